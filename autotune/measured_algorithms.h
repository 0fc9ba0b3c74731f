// Times that a log or a lock has for a network's products by each algorithm. The choice over the
// whole network uses them (choose_algorithms).
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "autotune/task.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {

// The best seconds of a task's kernel; empty: never measured
using KernelSeconds = std::function<Expected<std::optional<double>>(
    const std::string& task, const std::string& kernel_hash)>;

// Looks up times of these groups, as they are before the choice. Errors: those of `seconds`, an
// operator without a lowering.
Expected<AlgorithmSeconds> measured_algorithms(const Graph& graph, std::vector<Group> groups,
                                               const Target& target,
                                               const AlgorithmOptions& options,
                                               const KernelSeconds& seconds);

}  // namespace tw
