// The report of a tuning for people to read: its curves, and the schedules that took the place of
// default ones.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "driver/tune/tune_network.h"
#include "support/json.h"

namespace tw {

// The state after a round of one task
struct TuneRound {
  double seconds = 0;           // since the command began
  int trials = 0;               // trials of all tasks
  double network_seconds = 0;   // time of all tasks that have one
  std::vector<size_t> reached;  // tasks that got their first time in this round
  size_t task = 0;
  int task_trials = 0;
  double task_seconds = 0;  // time of its best schedule; infinite: none yet
};

// Records the rounds, and passes every event on.
class RoundsWatch final : public TuneWatch {
 public:
  explicit RoundsWatch(TuneWatch& next) : next_(next) {}
  const std::vector<TuneRound>& rounds() const { return rounds_; }

  void stage_begins(const std::string& stage) override { next_.stage_begins(stage); }
  void stage_at(const std::string& text) override { next_.stage_at(text); }
  void stage_ends() override { next_.stage_ends(); }
  void search_begins(const NetworkTuner& tuner, const Peaks& peaks,
                     const TuneBudget& budget) override;
  void task_begins(size_t task) override { next_.task_begins(task); }
  void task_ends(size_t task) override;
  void search_ends() override { next_.search_ends(); }

 private:
  TuneWatch& next_;
  const NetworkTuner* tuner_ = nullptr;
  const TuneBudget* budget_ = nullptr;
  std::mutex mutex_;  // guards the rounds
  std::vector<TuneRound> rounds_;
  std::vector<bool> has_time_;  // by task
};

struct TuneReport {
  std::string model, target;
  const TunedNetwork& tuned;
  const std::vector<TuneRound>& rounds;
};
Json to_json(const TuneReport& report);

}  // namespace tw
