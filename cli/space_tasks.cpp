#include <map>

#include "cli/space_tasks.h"
#include "frontend/frontend.h"
#include "passes/choose_algorithms.h"

namespace tw {
namespace {

std::string name_of(const LoweredGroup& lowered) {
  std::string name = lowered.kernel.name;
  for (const Buffer& b : lowered.kernel.buffers)
    if (b.role == BufferRole::input || b.role == BufferRole::output) name += (b.role == BufferRole::output ? " -> " : " ") + to_string(b.shape);
  return name;
}

bool applies(const Graph& graph, const Node& anchor, Algorithm a, const Target& target) {
  if (!target.devices.empty()) return a == Algorithm::direct;
  if (winograd_tile(a) != 0) return winograd_applies(graph, anchor);
  return a == Algorithm::direct || strassen_applies(graph, anchor, target);
}

}  // namespace

Expected<std::vector<Task>> model_tasks(const std::string& path, const std::map<std::string, int64_t>& dims, const Target& target) {
  TW_ASSIGN(Model model, import_onnx(path, {dims}));
  PassContext context{target.main_device(), 64 << 20};
  TW_TRY(run_passes(model.graph, context, default_pipeline()));
  std::vector<Group> groups = fuse_groups(model.graph);
  if (target.devices.empty()) {
    choose_algorithms(model.graph, groups, target, {});
    fuse_pools(model.graph, groups);
  }
  std::vector<Task> tasks;
  std::map<std::string, size_t> seen;
  for (const Group& group : groups) {
    Task task;
    for (int i = -1; i < kAlgorithmCount; ++i) {
      Group one = group;
      if (i >= 0) one.algorithm = static_cast<Algorithm>(i);
      if (i >= 0 && (one.algorithm == group.algorithm || !applies(model.graph, model.graph.node(group.anchor), one.algorithm, target))) continue;
      Expected<LoweredGroup> lowered = lower_group(model.graph, one, target.main_device());
      if (lowered) task.variants.push_back({one.algorithm, std::move(*lowered)});
      else if (i < 0) return lowered.takeError();
      else llvm::consumeError(lowered.takeError());   // what the group has beside its anchor does not go with the algorithm
    }
    task.name = name_of(task.variants.front().lowered);
    const auto [found, fresh] = seen.try_emplace(kernel_hash(task.variants.front().lowered.kernel), tasks.size());
    if (fresh) tasks.push_back(std::move(task));
    else ++tasks[found->second].calls;
  }
  return tasks;
}

}  // namespace tw
