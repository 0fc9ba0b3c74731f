// compile --report: the page of what was compiled, with times where its library runs here.
#pragma once
#include "cli/app.h"
#include "driver/report/report.h"

namespace tw {

// Runs the library on random inputs of the example's sizes, on one thread for about a second. Where
// it cannot run, the report says why.
void add_times(const CompileReport& compiled, Report& report);
// Compares what each fused group computes of such inputs with the reference evaluator, as far as
// that comes in so many seconds. Where it cannot be done, the report says why.
void add_errors(const CompileOptions& options, const Target& target, const CompileReport& compiled,
                double seconds, Report& report);

}  // namespace tw
