// Schedules that predictors choose without any measurement.
#pragma once
#include <memory>
#include <optional>

#include "autotune/models/predictor.h"
#include "autotune/task.h"

namespace tw {

// A choice must be ahead of the default by this many times the error that both scores may have
// together. A search seeks out what a score is wrong about, so it needs more than the 0.6 that is
// enough for a fixed pool of programs. Targets whose description says `schedules: predicted` take
// 0.6 all the same: no default schedule is made for them.
inline constexpr double kCaution = 1.5, kCautionWithoutRules = 0.6;

// A schedule from the generated space without static rules: the one that the predictors like best.
// The score must exceed the default's by more than `caution` times the error that both may have
// together, and the task must be like those of the predictors' training. nullopt: the default
// stays. usual: the candidate of the default schedule. threads: the number that kernels will run
// on. shared: the choice must have work for all cores where this kernel has; null: it need not.
// Errors: predictors that do not run.
Expected<std::optional<Candidate>> predict_schedule(
    const std::shared_ptr<const PredictorSet>& predictors, double caution, int threads,
    const Task& task, const Target& target, const Candidate& usual, const Kernel* shared);

}  // namespace tw
