// Decides how often a candidate runs: adaptive repeats, blocks taken again when something disturbed
// them, early ends. Knows no clock of its own, so that it can be tested with invented times.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <vector>

#include "autotune/measure.h"

namespace tw {

double median_of(std::vector<double> samples);   // of at least one
double seconds_of(const MeasureResult& result);  // the median; infinite unless it is ok
struct MedianInterval {
  double low = 0, high = 0;
};
// Holds the median of the distribution with at least 95 % (from order statistics: no assumption
// about its form). Fewer than six samples: 0 and infinity. More than a hundred: by the normal
// approximation.
MedianInterval median_interval(std::vector<double> samples);

// What stands before and after a block of samples: the seconds of a fixed computation, and how
// often this process was made to wait so far.
struct Probe {
  double sentinel = 0;
  int64_t switches = 0;
};

// `run(n)` runs the candidate n times and says how many seconds that took; `probe` looks at the
// machine. usual_sentinel: its seconds on an undisturbed machine. `first`: seconds of a first run,
// which is the only sample where a second does not fit the time-out.
struct Samples {
  std::vector<double> seconds;
  bool contended = false;
};
Samples take_samples(const MeasureLimits& limits, double first, double usual_sentinel,
                     llvm::function_ref<double(int64_t)> run, llvm::function_ref<Probe()> probe);

}  // namespace tw
