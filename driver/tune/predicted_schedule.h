// Schedules that predictors choose without any measurement.
#pragma once
#include <memory>
#include <optional>

#include "autotune/models/predictor.h"
#include "autotune/task.h"

namespace tw {

// A choice's predicted gain over the default must exceed this many times its standard deviation.
// Targets whose description says `schedules: predicted` take less: no default schedule is made for
// them.
inline constexpr double kCaution = 1.5, kCautionWithoutRules = 0.6;

// A schedule from the task's space without static rules: the one whose predicted gain over the
// default exceeds `caution` times its standard deviation by most. It must exceed it at all, and the
// task must be like those of the predictors' training. nullopt: the default
// stays. usual: the candidate of the default schedule. threads: the number that kernels will run
// on. shared: the choice must have work for all cores where this kernel has; null: it need not.
// Errors: predictors that do not run.
Expected<std::optional<Candidate>> predict_schedule(
    const std::shared_ptr<const PredictorSet>& predictors, double caution, int threads,
    const Task& task, const Target& target, const Candidate& usual, const Kernel* shared);

}  // namespace tw
