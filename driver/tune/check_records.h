// Are records true? The best one of each kernel is measured again beside the default schedule, in
// processes of their own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autotune/log.h"
#include "autotune/task.h"
#include "autotune/tuner.h"
#include "driver/tune/tune_budget.h"

namespace tw {

struct CheckedKernel {
  std::string key, name, algorithm;  // of the record
  double recorded = 0;               // seconds, when it was found
  // The default schedule is what is taken, so there is no rank to keep
  bool by_default = false;
  // Seconds by process: the record's schedule; the default one before it and behind it
  std::vector<double> tuned, first, again;
};
// Kernels without a record of their own are left out. Errors: a target that this machine cannot
// measure, a log that cannot be read.
Expected<std::vector<CheckedKernel>> check_records(const std::vector<Task>& tasks,
                                                   const std::string& log, const Target& target,
                                                   int threads, int processes,
                                                   const std::string& worker = "");

// Measurements that confirm the gain, or do not; left: for want of time
struct ConfirmedRecords {
  int kept = 0, refuted = 0, left = 0;
};
// What a compile would take of the log in place of the default schedules is measured again beside
// them, in processes of their own, and recorded: of a schedule's measurements the last counts, so
// what was the best of many by chance is not taken. Then the next best, and so on. What gains the
// network most comes first.
struct ConfirmOptions {
  int threads = 1;
  std::string worker = {};  // who measures; empty: this machine
  StopAsked stop;
  // Seconds that the first one is likely to take; later ones: as those before
  double expected = 0;
  // Which one it is at: "3 of 7, conv ..."
  std::function<void(const std::string& text)> watch = nullptr;
};
Expected<ConfirmedRecords> confirm_records(const std::vector<Task>& tasks, TuningLog& log,
                                           const Target& target, const TuneBudget& budget,
                                           const ConfirmOptions& options);
}  // namespace tw
