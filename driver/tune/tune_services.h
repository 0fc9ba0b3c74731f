// What a network's search needs from the other rooms: spaces, measurements on this machine, and the
// log.
#pragma once
#include <memory>
#include <string>

#include "autotune/log.h"
#include "autotune/network.h"

namespace tw {

struct TuneSources {
  bool generated = false;   // which space
  bool rules = true;        // its static rules
  uint64_t seed = 1;        // of the contents of parameters
  int jobs = 1;             // threads that build candidates
  int threads = 1;          // that candidates run on
  std::string worker = {};  // the folder of who measures; empty: this machine
};

struct TuneServices {
  NetworkServices network;
  // Whether a device can run the task by its default schedule; null: all run
  std::function<bool(const Task&)> runs;
  bool exact = false;  // cycles that the code generator counts: nothing to measure again
};
// target: a processor that this machine can stand for, or a device whose code generator predicts
// cycles. target and log must outlive the result; log: null: nothing is kept. Errors: a target that
// this machine cannot measure.
Expected<TuneServices> tune_services(const Target& target, const TuneSources& sources,
                                     TuningLog* log);

}  // namespace tw
