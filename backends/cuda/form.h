// The two final forms of a launch's code: NVPTX, and the processor's code for the tests' emulator.
// The rest of a kernel's code generation is the same for both.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "backends/device/launch.h"
#include "backends/llvm/values.h"

namespace tw::cuda {

using codegen::Values;
using device::AxisPlace, device::LaunchPlan;
using llvm::Value;

class GpuForm {
 public:
  virtual ~GpuForm() = default;
  virtual const CpuTraits& traits() const = 0;
  virtual Expected<std::unique_ptr<llvm::TargetMachine>> machine() const = 0;
  // The functions below write into a function whose first parameter comes from `define`.
  // Returns an i64.
  virtual Value* thread_id(Values& v, const AxisPlace& place) const = 0;
  // `at` is an offset in the memory that a block shares.
  virtual Value* shared(Values& v, const std::string& name, int64_t at, int64_t bytes) const = 0;
  virtual void barrier(Values& v) const = 0;
  // The next four work as in KernelEnvironment (backends/llvm/emission.h).
  virtual void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const = 0;
  virtual void commit(Values& v) const = 0;
  virtual void await(Values& v, int64_t groups) const = 0;
  virtual Expected<Value*> together(Values& v, const Intrinsic& intrinsic,
                                    llvm::ArrayRef<Value*> operands) const = 0;
  // Defines the launched function around a body with the parameters (ptr, then the launch's
  // parameters).
  virtual void define(const std::string& name, llvm::Function& body,
                      const LaunchPlan& plan) const = 0;
};

// `chip` and `level` are features of a device: "sm_90a", "ptx80".
std::unique_ptr<GpuForm> make_nvptx_form(const std::string& chip, const std::string& level);
// Makes functions void name(ptr state, ptr parameters). The state has six i64 (the ids of block and
// thread), a pointer to the block's shared memory, and five functions. Each takes the state first:
// barrier(i64 place in the code), copy(ptr to, ptr from, i64 bytes, i64 there), commit(), wait(i64
// groups), and together(ptr to void (ptr operands), i64 threads, i64 operands, ptr parts, ptr
// bytes). The last one runs the function on the operands of that many threads, put together from
// each thread's parts. `parameters` are addresses of the launch's parameters, as cuLaunchKernel
// takes them.
Expected<std::unique_ptr<GpuForm>> make_emulated_form();

}  // namespace tw::cuda
