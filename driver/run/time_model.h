// Times of a compiled model: whole runs, or each of its calls.
#pragma once
#include <vector>

#include "driver/run/model_run.h"

namespace tw {

struct TimingOptions {
  int runs = 0;        // 0: as many as the seconds allow
  double seconds = 1;  // at least one run
};
// Milliseconds of each run.
Expected<std::vector<double>> time_runs(ModelRun& run, const TimingOptions& options);
// The median milliseconds of every call.
Expected<std::vector<double>> time_calls(ModelRun& run, const TimingOptions& options);

struct Statistics {
  double min = 0, median = 0, p95 = 0, mean = 0;
};
// p95: the smallest sample that at least 95% of them do not exceed.
Statistics statistics(std::vector<double> samples);

}  // namespace tw
