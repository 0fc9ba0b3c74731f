// Schedules that predictors choose: nothing is measured.
#pragma once
#include <memory>
#include <optional>

#include "autotune/models/predictor.h"
#include "autotune/task.h"

namespace tw {

struct PredictingOptions {
  std::shared_ptr<const PredictorSet> predictors;
  // The space that steps are generated for, without static rules; else the hand-written schedules'
  bool generated = true;
  int threads = 1;  // that kernels will run on
  uint64_t seed = 1;
  // The choice must be better than the default by so many of its standard deviations
  double confidence = 1;
};

struct PredictedSchedule {
  Candidate candidate;
  double gain = 0;  // predicted: by how much its speed is above the default's, logarithm to base 2
  bool sure = false;  // enough to take it
};
// The schedule of the task's first variant that the predictors like best. Nothing: the default has
// the highest score, or the space has no legal point. usual: the default schedule, scheduled.
// Errors: predictors that do not run.
Expected<std::optional<PredictedSchedule>> predict_schedule(const PredictingOptions& options,
                                                            const Task& task, const Target& target,
                                                            const Candidate& usual);

}  // namespace tw
