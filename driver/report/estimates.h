// Estimates the calls of a model by LLVM's model of a processor that is not at hand.
#pragma once
#include "driver/report/report.h"

namespace tw {

// Adds an estimate, or why there is none, for each call. Works on `jobs` kernels at once.
Error add_estimates(const PlannedProgram& planned, const CompileReport& compiled,
                    const Target& target, int jobs, Report& report);

}  // namespace tw
