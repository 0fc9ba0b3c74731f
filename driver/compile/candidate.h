// Libraries of single scheduled kernels, which measuring runs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/kernel/bounds.h"
#include "ir/program.h"
#include "ir/schedule/constant_stages.h"
#include "ir/target.h"

namespace tw {

// Object code, and the function that it defines for others
struct CandidateObject {
  std::string symbol, code;
};
using CandidateObjects = std::vector<CandidateObject>;

// The name of the function that makes a constant with this kernel
std::string pack_symbol(const Kernel& pack);

class CandidateBuilder {
 public:
  virtual ~CandidateBuilder() = default;
  // Objects that define `symbol` and the functions that make constants for it; called from several
  // threads at once, except for a device. The same code has the same bytes.
  virtual Expected<CandidateObjects> compile(const RunKernel& run) const = 0;
  // A shared library from the objects. Never called while anything is compiled: the linker resets
  // options that code generation reads.
  virtual Expected<std::string> link(const CandidateObjects& objects) const = 0;

  const std::string symbol;
  const bool artifact;  // the libraries are artifacts, and `symbol` is their query function

 protected:
  CandidateBuilder(std::string function, bool is_artifact)
      : symbol(std::move(function)), artifact(is_artifact) {}
};

// For the processor: a library with one function. With one thread it runs on the caller, whatever
// its parallel loops say. With more, the pool of the measuring process shares these loops out as in
// a program. Refuses kernels that are not shown to stay inside of their buffers. Errors: a target
// that nothing can be compiled for.
Expected<std::unique_ptr<CandidateBuilder>> candidate_builder(const Target& target, int threads = 1,
                                                              Tables tables = Tables::ours);

// For the target's only device: a library like a model's. It copies the inputs to the device, runs
// the kernel once and copies the outputs back. The measuring process runs it through the runtime
// and counts the kernel's call alone. constants: the task's, by parameter. `compile` links, too:
// only one thread at a time may call it.
Expected<std::unique_ptr<CandidateBuilder>> device_candidate_builder(
    const Target& target, const std::shared_ptr<const DeviceBackend>& device,
    std::vector<Constant> constants);

}  // namespace tw
