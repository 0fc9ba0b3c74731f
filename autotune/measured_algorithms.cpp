#include "autotune/measured_algorithms.h"

#include <algorithm>

#include "passes/fuse_groups.h"

namespace tw {

Expected<std::optional<double>> RecordedTimes::of(const std::string& task,
                                                  const std::string& kernel_hash) const {
  TW_ASSIGN(const std::optional<Record> record, log_.best({task, target_, threads_}, kernel_hash));
  return record ? std::optional(median_seconds(*record)) : std::nullopt;
}

Expected<AlgorithmSeconds> measured_algorithms(const Graph& graph, std::vector<Group> groups,
                                               const Target& target,
                                               const AlgorithmOptions& options,
                                               const RecordedTimes& times) {
  choose_algorithms(graph, groups, target, options);
  // Kernels for a processor were tuned together with the pools that suit them.
  if (target.driver.empty()) fuse_pools(graph, groups);
  TW_ASSIGN(const std::vector<Task> tasks, tasks_of(graph, groups, target));
  std::map<std::string, std::map<Algorithm, double>> by_task;
  for (const Task& task : tasks) {
    if (task.variants.size() < 2) continue;
    for (const Variant& variant : task.variants) {
      TW_ASSIGN(const std::optional<double> best,
                times.of(task.key, definition_hash(variant.lowered)));
      if (!best) continue;
      const auto [known, fresh] = by_task[task.key].try_emplace(variant.algorithm, *best);
      if (!fresh) known->second = std::min(known->second, *best);  // also in other layouts
    }
  }
  AlgorithmSeconds out;
  for (const Group& group : groups)
    if (const auto task = by_task.find(task_key(graph, group)); task != by_task.end())
      out.emplace(group.anchor, task->second);
  return out;
}

}  // namespace tw
