#include "driver/report/tune_report.h"

namespace tw {
namespace {

Json round_json(const TuneRound& round) {
  return Json::Object{{"seconds", round.seconds},
                      {"trials", round.trials},
                      {"network_seconds", round.network_seconds},
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
    const NetworkTuner::Row row = tuner_->row(task);
    rounds_.push_back({budget_->now(), tuner_->measured(), tuner_->network_seconds(), task,
                       row.measured + row.known, row.best});
  }
  next_.task_ends(task);
}

Json to_json(const TuneReport& report) {
  const TunedNetwork& tuned = report.tuned;
  const NetworkTuner& tuner = *tuned.tuner;
  Json::Array rounds, tasks;
  for (const TuneRound& round : report.rounds) rounds.push_back(round_json(round));
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
