// What all candidates of one lowered kernel share: values of the symbols, contents of the
// parameters, and the outputs that they must have.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autotune/measure.h"
#include "ir/kernel/kernel.h"
#include "support/diag.h"

namespace tw {

// Makes libraries of scheduled kernels; whoever knows code generation and the linker hands it in.
struct CandidateBuilder {
  // Object code that defines `symbol`. From several threads at once. The same code has the same
  // bytes.
  std::function<Expected<std::string>(const Kernel& kernel)> compile;
  // A shared library of it. Never while anything is compiled: the linker resets options that code
  // generation reads.
  std::function<Expected<std::string>(const std::string& object)> link;
  std::string symbol;
  // Libraries are whole ones, with a query function (MeasureJob::artifact)
  bool artifact = false;
};

struct Reference {
  std::vector<int64_t> symbols;  // in the kernel's order
  uint64_t seed = 0;
  std::vector<std::byte> outputs;  // empty: candidates are not checked
  int threads = 1;                 // that candidates run on
  uint64_t weights_between = 0;    // MeasureJob's
};

// By how much outputs of two schedules may differ, of their range: sums in another order, rounded
// once more to the coarsest float that the kernel rounds to.
double tolerance_of(const Kernel& kernel);

// The parameters are the same for every schedule of a lowered kernel, the workspace is not. Errors:
// fewer values than symbols, a negative size. Library and symbol are left to the caller.
Expected<MeasureJob> job_of(const Kernel& scheduled, const Reference& reference);

// Outputs by a schedule that is known to be good (the default one), compiled and run where
// candidates will run. Errors: it does not build or run.
Expected<Reference> reference_outputs(const Kernel& scheduled, Reference inputs,
                                      const CandidateBuilder& builder, Transport& transport);
// The same by the interpreter, which is independent of code generation and slow: for kernels below
// a few million operations.
Expected<Reference> reference_outputs(const Kernel& kernel, Reference inputs);

}  // namespace tw
