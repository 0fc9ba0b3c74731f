// Connects a network's search to the other rooms: spaces, measurements and the log.
#pragma once
#include <memory>
#include <string>

#include "autotune/log.h"
#include "autotune/network.h"

namespace tw {

struct TuneSources {
  bool generated = false;   // the generated space, not the template's
  bool rules = true;        // keep to the space's static rules
  uint64_t seed = 1;        // seed of the parameters' contents
  int jobs = 1;             // threads that build candidates
  int threads = 1;          // threads that candidates run on
  std::string worker = {};  // folder of a worker that measures; empty: this machine
};

struct TuneServices {
  NetworkServices network;
  // True if the device can run the task by its default schedule; null: all tasks run
  std::function<bool(const Task&)> runs;
  bool exact = false;  // cycles that the code generator counts: nothing to measure again
};
// target: a processor that this machine can stand for, a device that it drives, or a device whose
// code generator predicts cycles. target and log must outlive the result. log may be null: nothing
// is kept. Errors: a target that this machine cannot measure.
Expected<TuneServices> tune_services(const Target& target, const TuneSources& sources,
                                     TuningLog* log);

}  // namespace tw
