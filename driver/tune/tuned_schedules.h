// Schedules from a tuning log, or from the lock beside the model, and default schedules for kernels
// that neither knows.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "autotune/models/predictor.h"
#include "driver/tune/predicted_schedule.h"
#include "program/schedules.h"

namespace tw {

struct ScheduleOptions {
  std::string log = {};   // records are taken from it; "": none
  std::string lock = {};  // if there is no log: pins are taken from it, if it exists; "": none
  bool frozen = false;    // the lock must pin every kernel
  int threads = 1;        // takes records measured with this many threads
  // A log that is only read for a note; "": none
  std::string unused_log = {};
  // Choose where neither log nor lock does; null: the defaults stay
  std::shared_ptr<const PredictorSet> predictors = nullptr;
  double caution = kCaution;  // parameter of predict_schedule
};
std::shared_ptr<const ScheduleSource> tuned_schedules(const ScheduleOptions& options);

}  // namespace tw
