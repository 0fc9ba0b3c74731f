// What LLVM's model of a processor that is not at hand says of a model's calls.
#pragma once
#include "driver/report/report.h"

namespace tw {

// An estimate, or why there is none, for each call on the processor. `jobs` kernels at once.
Error add_estimates(const PlannedProgram& planned, const CompileReport& compiled,
                    const Target& target, int jobs, Report& report);

}  // namespace tw
