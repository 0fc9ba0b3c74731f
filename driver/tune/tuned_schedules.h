// Schedules from a tuning log, or from the lock beside the model; the default ones for what neither
// knows.
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
  std::string lock = {};  // else pins from it, where it is there; "": none
  bool frozen = false;    // the lock must pin every kernel
  int threads = 1;        // records that were measured with so many
  // Only looked into, for a note; "": none
  std::string unused_log = {};
  // Choose where neither log nor lock does; null: nobody does
  std::shared_ptr<const PredictorSet> predictors = nullptr;
  double caution = kCaution;  // of predict_schedule
};
std::shared_ptr<const ScheduleSource> tuned_schedules(const ScheduleOptions& options);

}  // namespace tw
