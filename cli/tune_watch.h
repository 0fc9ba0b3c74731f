// Shows a running tuning on the console.
#pragma once
#include <optional>

#include "cli/progress.h"
#include "cli/tune_table.h"
#include "driver/tune/tune_network.h"

namespace tw {

class ConsoleTuneWatch final : public TuneWatch {
 public:
  // trials: the limit, 0: none. quiet: no JSON lines.
  ConsoleTuneWatch(Console& console, int trials, bool quiet)
      : console_(console), progress_(console), trials_(trials), quiet_(quiet) {}

  void stage_begins(const std::string& stage) override { progress_.begin(stage); }
  void stage_at(const std::string& text) override { progress_.detail(text); }
  void stage_ends() override { progress_.end(); }
  void search_begins(const NetworkTuner& tuner, const Peaks& peaks,
                     const TuneBudget& budget) override {
    view_.emplace(console_, tuner, peaks, budget, trials_, quiet_);
  }
  void task_begins(size_t task) override { view_->begins(task); }
  void task_ends(size_t task) override { view_->ends(task); }
  void search_ends() override { view_.reset(); }

 private:
  Console& console_;
  Progress progress_;
  int trials_;
  bool quiet_;
  std::optional<TuneView> view_;
};

}  // namespace tw
