// Decides how often a candidate runs: it adapts the repeats, takes disturbed blocks again, and ends
// early. It has no clock of its own, so that tests can invent times.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <vector>

#include "autotune/measure.h"
#include "autotune/median.h"

namespace tw {

// The state before and after a block of samples: seconds of a fixed computation, and involuntary
// switches of this process so far.
struct Probe {
  double sentinel = 0;
  int64_t switches = 0;
};

// `run(n)` runs the candidate n times and returns the seconds; `probe` examines the machine.
// `usual_sentinel` is the sentinel's time on an undisturbed machine. `first` is the time of a first
// run; it is the only sample where a second run does not fit the time-out.
struct Samples {
  std::vector<double> seconds;
  bool contended = false;
};
Samples take_samples(const MeasureLimits& limits, double first, double usual_sentinel,
                     llvm::function_ref<double(int64_t)> run, llvm::function_ref<Probe()> probe);

}  // namespace tw
