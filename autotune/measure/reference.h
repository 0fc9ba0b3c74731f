// The common data of all candidates of one lowered kernel: values of the symbols, contents of the
// parameters, and the expected outputs.
#pragma once
#include <string>
#include <vector>

#include "autotune/measure.h"
#include "driver/compile/candidate.h"
#include "support/diag.h"

namespace tw {

struct Reference {
  std::vector<int64_t> symbols;  // values in the kernel's order
  uint64_t seed = 0;
  std::vector<std::byte> outputs;  // empty: candidates are not checked
  int threads = 1;                 // threads of candidates
  uint64_t weights_between = 0;    // see MeasureJob
};

// The allowed difference between outputs of two schedules, relative to their range: sums in another
// order, and one more rounding to the coarsest float type that the kernel rounds to.
double tolerance_of(const Kernel& kernel);

// A job without library and symbol, which the caller sets. The inputs and outputs are the same for
// every schedule of a lowered kernel, but the workspace and the forms of constants are not. Errors:
// another number of values than of symbols, a negative size.
Expected<MeasureJob> job_of(const RunKernel& scheduled, const Reference& reference);

// Links the objects, and gives the job their library. Constants of artifacts are in it.
Error add_library(MeasureJob& job, const CandidateBuilder& builder,
                  const CandidateObjects& objects);

// A job with its library
Expected<MeasureJob> job_of(const RunKernel& scheduled, const Reference& reference,
                            const CandidateBuilder& builder);

// Takes outputs from a schedule that is known to be good (the default one), compiled and run where
// candidates will run. Errors: it does not build or run.
Expected<Reference> reference_outputs(const RunKernel& scheduled, Reference inputs,
                                      const CandidateBuilder& builder, Transport& transport);
// Takes outputs from the interpreter. It is independent of code generation and slow, so it suits
// kernels below a few million operations.
Expected<Reference> reference_outputs(const Kernel& kernel, Reference inputs);

}  // namespace tw
