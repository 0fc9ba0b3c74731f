#include "driver/report/tune_report.h"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

// Seconds of a task's calls by its default schedule; 0: not known.
double default_seconds(const NetworkTuner& tuner, size_t task) {
  const NetworkTuner::Row row = tuner.row(task);
  return std::isfinite(row.first) ? static_cast<double>(row.task->calls) * row.first : 0;
}

// waiting: seconds, by their default schedules, of the tasks that get their first time later. With
// them the network's time counts the same tasks in every round, and so it only falls.
Json round_json(const TuneRound& round, double waiting) {
  return Json::Object{{"seconds", round.seconds},
                      {"trials", round.trials},
                      {"network_seconds", round.network_seconds + waiting},
                      {"task", static_cast<int64_t>(round.task)},
                      {"task_trials", round.task_trials},
                      {"task_seconds", round.task_seconds}};
}

Json task_json(const NetworkTuner& tuner, size_t task) {
  const NetworkTuner::Row row = tuner.row(task);
  const NetworkTuner::Change change = tuner.change(task);
  return Json::Object{{"name", row.task->name},
                      {"calls", row.task->calls},
                      {"flops", row.task->flops},
                      {"default_seconds", row.first},
                      {"seconds", row.best},
                      {"trials", row.measured},
                      {"known", row.known},
                      {"space", row.space},
                      {"error", row.error},
                      {"algorithm", algorithm_name(change.algorithm)},
                      {"default_schedule", change.first},
                      {"schedule", change.best},
                      {"curve", json_array(tuner.curve(task))}};
}

}  // namespace

void RoundsWatch::search_begins(const NetworkTuner& tuner, const Peaks& peaks,
                                const TuneBudget& budget) {
  tuner_ = &tuner, budget_ = &budget;
  next_.search_begins(tuner, peaks, budget);
}

void RoundsWatch::task_ends(size_t task) {
  {
    const std::lock_guard lock(mutex_);
    has_time_.resize(tuner_->task_count());
    std::vector<size_t> reached;
    for (size_t i = 0; i < has_time_.size(); ++i) {
      if (has_time_[i] || !std::isfinite(tuner_->row(i).best)) continue;
      has_time_[i] = true;
      reached.push_back(i);
    }
    const NetworkTuner::Row row = tuner_->row(task);
    rounds_.push_back({budget_->now(), tuner_->measured(), tuner_->network_seconds(),
                       std::move(reached), task, row.measured + row.known, row.best});
  }
  next_.task_ends(task);
}

Json to_json(const TuneReport& report) {
  const TunedNetwork& tuned = report.tuned;
  const NetworkTuner& tuner = *tuned.tuner;
  Json::Array rounds, tasks;
  double waiting = 0;
  for (const TuneRound& round : report.rounds)
    for (const size_t task : round.reached) waiting += default_seconds(tuner, task);
  for (const TuneRound& round : report.rounds) {
    for (const size_t task : round.reached) waiting -= default_seconds(tuner, task);
    rounds.push_back(round_json(round, std::max(waiting, 0.0)));
  }
  for (size_t task = 0; task < tuner.task_count(); ++task) tasks.push_back(task_json(tuner, task));
  return Json::Object{{"kind", "tuning"},
                      {"model", report.model},
                      {"target", report.target},
                      {"stopped", stop_reason_name(tuned.reason)},
                      {"seconds", tuned.outcome.seconds},
                      {"trials", tuner.measured()},
                      {"reached", static_cast<int64_t>(tuned.outcome.reached)},
                      {"confirmed", tuned.outcome.confirmed.kept},
                      {"refuted", tuned.outcome.confirmed.refuted},
                      {"not_confirmed", tuned.outcome.confirmed.left},
                      {"network_seconds", tuner.network_seconds()},
                      {"default_network_seconds", tuner.first_seconds()},
                      {"gflops", tuned.peaks.gflops},
                      {"rounds", rounds},
                      {"tasks", tasks}};
}

}  // namespace tw
