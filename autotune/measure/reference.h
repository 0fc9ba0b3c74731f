// What all candidates of one lowered kernel share: values of the symbols, contents of the parameters, and the outputs that they must have.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autotune/measure.h"
#include "ir/kernel/kernel.h"
#include "support/diag.h"

namespace tw {

struct BuiltCandidate {
  std::string library, symbol;   // of a MeasureJob
  std::string code_hash;         // of the object code: candidates with the same one need to be measured once
};
// Compiles and links a scheduled kernel. Called from several threads at once.
using BuildCandidate = std::function<Expected<BuiltCandidate>(const Kernel& kernel)>;

struct Reference {
  std::vector<int64_t> symbols;      // in the kernel's order
  uint64_t seed = 0;
  std::vector<std::byte> outputs;    // empty: candidates are not checked
  double tolerance = 1e-4;
};

// The parameters are the same for every schedule of a lowered kernel, the workspace is not. Errors: fewer values than symbols, a negative size.
Expected<MeasureJob> job_of(const Kernel& scheduled, const BuiltCandidate& built, const Reference& reference);

// Outputs by a schedule that is known to be good (the default one), compiled and run where candidates will run. Errors: it does not build or run.
Expected<Reference> reference_outputs(const Kernel& scheduled, Reference inputs, const BuildCandidate& build, Transport& transport);
// The same by the interpreter, which is independent of code generation and slow: for kernels below a few million operations.
Expected<Reference> reference_outputs(const Kernel& kernel, Reference inputs);

}  // namespace tw
