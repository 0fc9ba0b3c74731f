// What a network's search needs from the other rooms: spaces, measurements on this machine, and the log.
#pragma once
#include <atomic>
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
};

// Leaves the tasks that the device can run by their default schedules. Errors: no back end for the device.
Error keep_runnable(std::vector<Task>& tasks, const Target& device);

// target: a processor that this machine can stand for, or a device whose code generator predicts cycles. target, log and stop must outlive the result; log: null: nothing is kept. Errors: a target that this machine cannot measure.
Expected<NetworkServices> tune_services(const Target& target, const TuneSources& sources, TuningLog* log, const std::atomic<bool>* stop);

}  // namespace tw
