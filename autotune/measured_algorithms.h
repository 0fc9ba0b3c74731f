// Times that a log or a lock has for a network's products by each algorithm. The choice over the
// whole network uses them (choose_algorithms).
#pragma once
#include <optional>
#include <string>

#include "autotune/log.h"
#include "autotune/task.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {

// The best times of kernels that a log has for a target. The log must outlive them.
class RecordedTimes {
 public:
  RecordedTimes(TuningLog& log, const Target& target, int threads)
      : log_(log), target_(target_key(target)), threads_(threads) {}
  // Seconds of a task's kernel; empty: never measured
  Expected<std::optional<double>> of(const std::string& task, const std::string& kernel_hash) const;

 private:
  TuningLog& log_;
  std::string target_;
  int threads_;
};

// Looks up times of these groups, as they are before the choice. Errors: a log that cannot be
// read, an operator without a lowering.
Expected<AlgorithmSeconds> measured_algorithms(const Graph& graph, std::vector<Group> groups,
                                               const Target& target,
                                               const AlgorithmOptions& options,
                                               const RecordedTimes& times);

}  // namespace tw
