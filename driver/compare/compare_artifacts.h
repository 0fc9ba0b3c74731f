// Times two compiled models of the same interface against each other: is the tuned one faster? Only
// ratios of interleaved blocks count, since a machine's speed changes from one second to the next.
#pragma once
#include <string>
#include <vector>

#include "autotune/measure/sampler.h"
#include "support/diag.h"

namespace tw {

struct CompareOptions {
  // Fresh processes, since each has its own places in memory. Fewer than 6 give no interval.
  int processes = 7;
  // Further processes follow until the interval is this part of the ratio wide; 0: none follow
  double narrow = 0;
  double most_seconds = 0;  // after so many seconds none follows
  double seconds = 1.5;     // seconds of runs in each process
  int threads = 1;
  std::vector<std::string> dims{};         // "batch=1"
  std::string program = "/proc/self/exe";  // started as PROGRAM compare-worker ...
};

struct Comparison {
  double first_ms = 0;  // median over the processes
  // first_ms over the ratio, which the machine's changing speed does not affect
  double second_ms = 0;
  // Median over the processes of first / second: above 1, the second is faster
  double ratio = 0;
  MedianInterval interval;  // 95 % interval of the ratio
  bool second_is_faster() const { return interval.low > 1; }
  bool first_is_faster() const { return interval.high < 1; }
};
// Estimated seconds of a comparison's first processes, with their start. run: seconds of a run; 0:
// short
double compare_seconds(const CompareOptions& options, double run = 0);
// Runs the library once in a process of its own. The result is the seconds of the run. Errors: a
// library that does not load or run, or ends the process; sizes that are missing.
Expected<double> check_runs(const std::string& library, const CompareOptions& options);
// Errors: a library that does not load or run.
Expected<Comparison> compare_artifacts(const std::string& first, const std::string& second,
                                       const CompareOptions& options);

// The child's side: PROGRAM compare-worker FIRST SECOND|"" THREADS SECONDS DIM...
bool is_compare_worker(int argc, const char* const* argv);
int compare_worker(int argc, const char* const* argv);

}  // namespace tw
