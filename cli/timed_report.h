// compile --report: the page of what was compiled, with times where its library runs here.
#pragma once
#include "cli/app.h"
#include "driver/report/report.h"

namespace tw {

// Runs the library on random inputs of the example's sizes, on one thread for about a second. Where
// it cannot run, the report says why.
void add_times(const CompileReport& compiled, Report& report);

}  // namespace tw
