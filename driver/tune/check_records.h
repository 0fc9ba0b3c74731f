// Checks records: measures the best one of each kernel again beside the default schedule, in
// separate processes.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autotune/log.h"
#include "autotune/measure/place.h"
#include "autotune/task.h"
#include "autotune/task_search.h"
#include "autotune/tuner.h"
#include "driver/tune/tune_budget.h"

namespace tw {

struct CheckedKernel {
  std::string key, name, algorithm;  // the record's
  double recorded = 0;               // seconds in the record
  // A compile takes the default schedule, so there is no gain to check.
  bool by_default = false;
  // Seconds by process: the record's schedule; the default one before it and after it
  std::vector<double> tuned, first, again;
};
// Kernels without a record of their own are left out. Errors: a target that this machine cannot
// measure, a log that cannot be read.
Expected<std::vector<CheckedKernel>> check_records(const std::vector<Task>& tasks,
                                                   const std::string& log, const Target& target,
                                                   int threads, int processes,
                                                   const std::string& worker = "");

// Numbers of records whose gain was confirmed or refuted; left: not measured for want of time
struct ConfirmedRecords {
  int kept = 0, refuted = 0, left = 0;
  std::map<std::string, ConfirmedGain> gains = {};  // by task; of its last record that was measured
};
struct ConfirmOptions {
  int threads = 1;  // threads of the records
  StopAsked stop;
  // Seconds that the first record probably takes; later ones take as long as earlier ones
  double expected = 0;
  // Told of each record that begins: "3 of 7  conv ..."
  std::function<void(const std::string& text)> watch = nullptr;
};
// Measures the records again that a compile would take in place of default schedules, beside these,
// in separate processes, and adds the times to the log. The last measurement of a schedule counts,
// so a schedule that was the best of many by chance is not taken. The next best follows, and so on.
// Records that gain the network most come first.
Expected<ConfirmedRecords> confirm_records(const std::vector<Task>& tasks, TuningLog& log,
                                           const MeasuringPlace& place, const TuneBudget& budget,
                                           const ConfirmOptions& options);
}  // namespace tw
