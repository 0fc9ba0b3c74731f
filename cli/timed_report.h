// compile --report: the report of a compile, with times where the library runs here.
#pragma once
#include "cli/app.h"
#include "driver/report/report.h"

namespace tw {

// Runs the library on random inputs of the example's sizes, on one thread for about a second. If it
// cannot run, the report says why.
void add_times(const CompileReport& compiled, Report& report);
// Compares the result of each fused group on such inputs with the reference evaluator, as far as
// `seconds` allow. If it cannot be done, the report says why.
void add_errors(const CompileOptions& options, const Target& target, const CompileReport& compiled,
                double seconds, Report& report);

}  // namespace tw
