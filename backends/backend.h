// What a code generator offers. Made by one explicit function; what a device can do is data in the
// Target.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/kernel/shared_loop.h"
#include "ir/program.h"
#include "ir/target.h"
#include "support/diag.h"

namespace tw {

struct KernelReport {  // what code generation found out about one kernel
  std::string name;
  int64_t code_bytes = 0;
  // Inside loops, from LLVM's register allocator; a device's compiler counts bytes
  int64_t spills = 0, reloads = 0;
  bool on_device = false;
  bool one_thread = false;  // of the device runs a launch of many points
  // There: what its compiler says, 0 where it says nothing; of several launches the largest.
  int64_t registers = 0, stack_bytes = 0;  // of a thread
  int64_t shared_bytes = 0;                // of a block
  int64_t instructions = 0, cycles = 0;    // of a stream, predicted
};

struct ObjectCode {
  std::vector<std::string> objects;   // relocatable files' bytes, in link order
  std::vector<KernelReport> kernels;  // one a kernel of the program
};

struct CodegenOptions {
  int jobs = 1;                  // kernels compiled at once
  std::string symbol = "model";  // C identifier: the exported function is tw_<symbol>_query
  std::string manifest;          // JSON text stored in the artifact
  std::string target_name;
  SymbolNames symbol_names;  // what the interface calls the program's symbols
  // Names and drivers of Program::devices
  std::vector<std::pair<std::string, std::string>> devices;
  // The weights are a file of this name beside the library; "": they are inside
  std::string weights_file;
  // Which of the programs of a library this is, and how many there are: the first has what all
  // share, and the last one whose instructions the processor has runs
  int path = 0, paths = 1;
  // Parallel loops are cut into chunks of at least that estimated time; 0: as many as threads
  int64_t chunk_ns = kPartNanoseconds;
};

// The innermost loop of a kernel's machine code that takes the most cycles.
struct HotLoop {
  double cycles = 0, iterations = 0;  // of all its iterations; 0: the code has no loop
  // Of an iteration: multiply-adds by element, and registers that it saves on the stack or loads
  double multiply_adds = 0, spills = 0;

  double once() const { return iterations > 0 ? cycles / iterations : 0; }
};

// Of one run on one thread, by LLVM's model of the processor: every access is a hit in the first
// cache. No measurement, and not to be compared with one.
struct KernelEstimate {
  double cycles = 0, instructions = 0;
  HotLoop hot;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Error supports(const Kernel& kernel) const = 0;  // success, or the reason why not
  // Objects of the whole model: kernels, the program function, descriptors, runtime support code.
  virtual Expected<ObjectCode> compile(const Program& program,
                                       const CodegenOptions& options) const = 0;
  // One object with `void <kernel.name>(void* const* buffers, void* workspace, const int64_t*
  // symbols)` exported: weight packing, tests and tuning candidates. Single-threaded; with
  // `parallel` a fourth parameter, a `const tw_parallel*`, runs the parallel loops, shared out as
  // in a program.
  virtual Expected<std::string> compile_kernel(const Kernel& kernel,
                                               bool parallel = false) const = 0;
  // What the kernel's code takes on the target's processor, which need not be at hand: the same on
  // every machine. Errors: sizes that are not known, loops that depend on data, calls, a processor
  // that LLVM has no model of.
  virtual Expected<KernelEstimate> estimate(const Kernel& kernel) const = 0;
  // The processors, the target's among them, for which LLVM has the same model: estimates do not
  // tell them apart.
  virtual std::vector<std::string> estimated_alike() const = 0;
  // Text of the kernel at a stage of code generation: "llvm" or "asm".
  virtual Expected<std::string> disassemble(const Kernel& kernel,
                                            const std::string& stage) const = 0;
};

Expected<std::unique_ptr<Backend>> make_backend(const Target& target);

// Writes code for a device beside the processor (an entry of Target::devices), in the form that its
// driver in the runtime reads.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  // A scheduled kernel: success, or the reason why not. From several threads at once.
  virtual Error supports(const Kernel& kernel) const = 0;
  // The constants of one call of a kernel that is supported, by parameter (source empty: not
  // constant): success, or why the device cannot take them. From several threads at once.
  virtual Error accepts(const Kernel&, std::span<const Constant>) const { return Error::success(); }
  // Fills the device's code and launches for the kernels that the program calls there, `jobs` at
  // once; a report by kernel of the program, nameless for others. `device`: 1 + index into
  // Target::devices.
  virtual Expected<std::vector<KernelReport>> compile(Program& program, int device,
                                                      int jobs) const = 0;
  // Whether reports say how many cycles a kernel takes
  virtual bool predicts_cycles() const { return false; }
  // What people should know of the code that this machine makes
  virtual std::string note() const { return ""; }
};

// By the device's driver. Errors: no such driver (naming those there are), a feature that it does
// not know.
Expected<std::unique_ptr<DeviceBackend>> make_device_backend(const Target& device);
// Both are processors, or devices of one driver.
bool same_driver(const Target& a, const Target& b);

// For the functions that make back ends. Errors: every intrinsic of the target whose `emit` its
// code generator does not write; `forms` says what it does.
Error check_emits(const Target& target, const std::string& forms,
                  const std::function<bool(const Intrinsic&)>& is_written);

}  // namespace tw
