// What a log or a lock knows of a network's products by each algorithm, for the choice over the
// whole network (choose_algorithms).
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "autotune/task.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {

// The best seconds of a task's kernel; none: never measured.
using KernelSeconds = std::function<Expected<std::optional<double>>(
    const std::string& task, const std::string& kernel_hash)>;

// Of these groups, as they are before the choice. Errors: those of `seconds`, an operator without a
// lowering.
Expected<AlgorithmSeconds> measured_algorithms(const Graph& graph, std::vector<Group> groups,
                                               const Target& target,
                                               const AlgorithmOptions& options,
                                               const KernelSeconds& seconds);

}  // namespace tw
