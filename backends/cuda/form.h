// The two last forms of a launch's code: NVPTX, and the processor's for the tests' emulator.
// Everything else of a kernel is the same.
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
  // In a function whose first parameter is what `define` passes on.
  // i64
  virtual Value* thread_id(Values& v, const AxisPlace& place) const = 0;
  // `at`: in what a block shares
  virtual Value* shared(Values& v, const std::string& name, int64_t at, int64_t bytes) const = 0;
  virtual void barrier(Values& v) const = 0;
  // As of KernelEnvironment (backends/llvm/emission.h).
  virtual void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const = 0;
  virtual void commit(Values& v) const = 0;
  virtual void await(Values& v, int64_t groups) const = 0;
  virtual Expected<Value*> together(Values& v, const Intrinsic& intrinsic,
                                    llvm::ArrayRef<Value*> operands) const = 0;
  // Defines the function that is launched, around a body with the parameters (ptr, then those of
  // the launch).
  virtual void define(const std::string& name, llvm::Function& body,
                      const LaunchPlan& plan) const = 0;
};

// As features of a device name them: "sm_90a", "ptx80".
std::unique_ptr<GpuForm> make_nvptx_form(const std::string& chip, const std::string& level);
// void name(ptr state, ptr parameters): six i64 (ids of the block and of the thread), ptr to what
// the block shares, and five functions, each with the state first: barrier(i64 place in the code),
// copy(ptr to, ptr from, i64 bytes, i64 there), commit(), wait(i64 groups), together(ptr to void
// (ptr operands), i64 threads, i64 operands, ptr parts, ptr bytes), which runs the function on the
// operands of so many threads, put together of the parts that each brings. `parameters` are the
// addresses of the launch's, as cuLaunchKernel takes them.
Expected<std::unique_ptr<GpuForm>> make_emulated_form();

}  // namespace tw::cuda
