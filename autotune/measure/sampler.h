// Decides how often a candidate runs: adaptive repeats, blocks taken again when something disturbed
// them, early ends. Knows no clock of its own, so that it can be tested with invented times.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <vector>

#include "autotune/measure.h"
#include "autotune/median.h"

namespace tw {

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
