// Schedules that predictors choose: nothing is measured.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "autotune/models/predictor.h"
#include "autotune/task.h"

namespace tw {

// A schedule from the space that steps are generated for, without static rules: the one that the
// predictors like best, if its score is above the default's by more than 0.6 of what both may be
// off together, and the task is like those of their training. Else nothing: the default stays.
// usual: the default schedule, scheduled. threads: that kernels will run on. accept: whether a
// scheduled kernel may be taken at all. Errors: predictors that do not run.
Expected<std::optional<Candidate>> predict_schedule(
    const std::shared_ptr<const PredictorSet>& predictors, int threads, const Task& task,
    const Target& target, const Candidate& usual, const std::function<bool(const Kernel&)>& accept);

}  // namespace tw
