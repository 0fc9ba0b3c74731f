// The interface of code generators. One explicit function makes each of them. The abilities of a
// device are data in the Target.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/kernel/shared_loop.h"
#include "ir/program.h"
#include "ir/target.h"
#include "support/diag.h"

namespace tw {

struct KernelReport {  // facts about one kernel from its code generation
  std::string name;
  int64_t code_bytes = 0;
  // Counts inside loops, from LLVM's register allocator; a device's compiler counts bytes
  int64_t spills = 0, reloads = 0;
  bool on_device = false;
  bool stored = false;      // the object was taken from the store
  bool one_thread = false;  // a single thread of the device runs a launch of many points
  // On a device: numbers from its compiler, 0 where it gives none; the largest of several launches
  int64_t registers = 0, stack_bytes = 0;  // numbers of one thread
  int64_t shared_bytes = 0;                // bytes of one block
  int64_t instructions = 0, cycles = 0;    // counts of a stream; cycles are predicted
};

struct ObjectCode {
  std::vector<std::string> objects;   // bytes of relocatable files, in link order
  std::vector<KernelReport> kernels;  // one for each kernel of the program
};

// Keeps objects of kernels from one compilation to the next. Calls come from several threads.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  virtual void keep(const std::string& key, std::string_view bytes) = 0;
};

struct CodegenOptions {
  int jobs = 1;                  // kernels compiled at once
  std::string symbol = "model";  // C identifier: the exported function is tw_<symbol>_query
  std::string manifest;          // JSON text stored in the artifact
  std::string target_name;
  SymbolNames symbol_names;  // the interface's names of the program's symbols
  // Names and drivers of Program::devices
  std::vector<std::pair<std::string, std::string>> devices;
  // Name of the file beside the library that has the weights; "": they are inside
  std::string weights_file;
  // Index of this program in a library of several, and their number. The first has the parts that
  // all share. The last program whose instructions the processor has is the one that runs
  int path = 0, paths = 1;
  // Least estimated time of a chunk of a parallel loop; 0: as many chunks as threads
  int64_t chunk_ns = kPartNanoseconds;
  ObjectStore* store = nullptr;  // null: every object is generated
};

// The innermost loop that takes the most cycles in a kernel's machine code
struct HotLoop {
  double cycles = 0, iterations = 0;  // totals of the loop; 0: the code has no loop
  // Per iteration: multiply-adds by element, and registers that it saves to the stack or reloads
  double multiply_adds = 0, spills = 0;

  double once() const { return iterations > 0 ? cycles / iterations : 0; }
};

// Whose times of instructions an estimate takes. A target that is a set of instructions, as
// x86-64-v3, is no processor: `likely` takes those of the one that LLVM has in mind for it.
enum class ProcessorModel : uint8_t { own, likely };

// The estimate for one run on one thread, by LLVM's model of the processor, in which every access
// hits the first cache. It is no measurement, and must not be compared with one.
struct KernelEstimate {
  double cycles = 0, instructions = 0;
  HotLoop hot;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Error supports(const Kernel& kernel) const = 0;  // success, or the reason why not
  // Returns the objects of the whole model: kernels, the program function, descriptors, and runtime
  // code.
  virtual Expected<ObjectCode> compile(const Program& program,
                                       const CodegenOptions& options) const = 0;
  // Returns one object that exports `void <kernel.name>(void* const* buffers, void* workspace,
  // const int64_t* symbols)`, for weight packing, tests and tuning candidates. It is
  // single-threaded. With `parallel` it has a fourth parameter, a `const tw_parallel*`, which runs
  // the parallel loops in the chunks that a program would use.
  virtual Expected<std::string> compile_kernel(const Kernel& kernel,
                                               bool parallel = false) const = 0;
  // Estimates the kernel's code on the target's processor, which need not be at hand; the result is
  // the same on every machine. Errors: unknown sizes, loops that depend on data, calls, a processor
  // without a model in LLVM.
  virtual Expected<KernelEstimate> estimate(const Kernel& kernel, ProcessorModel model) const = 0;
  // The processors for which LLVM has the same model as for the target's, which is among them.
  // Estimates cannot tell them apart.
  virtual std::vector<std::string> estimated_alike() const = 0;
  // The text of the kernel at a stage of code generation: "llvm" or "asm"
  virtual Expected<std::string> disassemble(const Kernel& kernel,
                                            const std::string& stage) const = 0;
};

Expected<std::unique_ptr<Backend>> make_backend(const Target& target);

// Writes code for a device beside the processor (an entry of Target::devices), in the form that its
// driver in the runtime reads.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  // Success for a scheduled kernel that the device can run, or the reason why not. Called from
  // several threads at once.
  virtual Error supports(const Kernel& kernel) const = 0;
  // Success for the constants of one call of a supported kernel, one for each parameter (source
  // empty: not constant), or the reason why the device cannot take them. Called from several
  // threads at once.
  virtual Error accepts(const Kernel&, std::span<const Constant>) const { return Error::success(); }
  // Fills the device's code and launches for the kernels that the program calls on it, compiling
  // `jobs` at once. Returns a report for each kernel of the program, without a name for kernels
  // elsewhere. `device` is 1 + an index into Target::devices.
  virtual Expected<std::vector<KernelReport>> compile(Program& program, int device,
                                                      int jobs) const = 0;
  // True if reports have the cycles of kernels
  virtual bool predicts_cycles() const { return false; }
  // A remark for users about the code that this machine makes
  virtual std::string note() const { return ""; }
};

// Makes the back end for the device's driver. Errors: an unknown driver (with a list of the known
// ones), or an unknown feature.
Expected<std::unique_ptr<DeviceBackend>> make_device_backend(const Target& device);
// True for two processors, and for devices of one driver.
bool same_driver(const Target& a, const Target& b);

// A check for the functions that make back ends. Errors: each intrinsic of the target whose `emit`
// the code generator cannot write; `forms` lists the forms that it can.
Error check_emits(const Target& target, const std::string& forms,
                  const std::function<bool(const Intrinsic&)>& is_written);

}  // namespace tw
