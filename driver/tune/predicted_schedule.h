// Schedules that predictors choose: nothing is measured.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "autotune/models/predictor.h"
#include "autotune/task.h"

namespace tw {

// By how many times what two scores may be off together a choice has to be ahead of the default.
// The best of a pool of programs is right at 0.6 of that. A search looks for what a score is wrong
// about, and was wrong at 1.15: so much is risked only where the default is nobody's best.
inline constexpr double kCaution = 1.5, kCautionWithoutRules = 0.6;

// A schedule from the space that steps are generated for, without static rules: the one that the
// predictors like best, if its score is above the default's by more than `caution` times what both
// may be off together, and the task is like those of their training. Else nothing: the default
// stays. usual: the default schedule, scheduled. threads: that kernels will run on. accept: whether
// a scheduled kernel may be taken at all. Errors: predictors that do not run.
Expected<std::optional<Candidate>> predict_schedule(
    const std::shared_ptr<const PredictorSet>& predictors, double caution, int threads,
    const Task& task, const Target& target, const Candidate& usual,
    const std::function<bool(const Kernel&)>& accept);

}  // namespace tw
