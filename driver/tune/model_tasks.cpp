#include "driver/tune/model_tasks.h"

#include <algorithm>

#include "autotune/measured_layouts.h"
#include "frontend/frontend.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"

namespace tw {

namespace {

// Adds the kernels in other layouts to tasks that exist.
Error add_variants(std::vector<Task>& tasks, const LayoutPlan& plan, const Target& target) {
  TW_ASSIGN(const std::vector<Task> others, tasks_of(plan.graph, plan.groups, target));
  for (const Task& other : others) {
    const auto task = std::ranges::find(tasks, other.key, &Task::key);
    if (task == tasks.end()) continue;
    for (const Variant& variant : other.variants) {
      const std::string hash = definition_hash(variant.lowered);
      if (std::ranges::none_of(
              task->variants, [&](const Variant& v) { return definition_hash(v.lowered) == hash; }))
        task->variants.push_back(variant);
    }
  }
  return Error::success();
}

// Removes variants of a task that all its values refuse.
void leave_out(std::vector<Task>& tasks, const Graph& graph, const std::vector<Group>& groups,
               const RefusedAlgorithms& refused) {
  for (const auto& [algorithm, values] : refused) {
    std::set<std::string> with, without;  // keys of tasks
    for (const Group& group : groups) {
      if (!has_algorithms(graph, group)) continue;
      const std::string& made = graph.value(graph.node(group.anchor).output).name;
      (values.contains(made) ? without : with).insert(task_key(graph, group));
    }
    for (Task& task : tasks)
      if (without.contains(task.key) && !with.contains(task.key))
        std::erase_if(task.variants, [&](const Variant& v) { return v.algorithm == algorithm; });
  }
}

}  // namespace

Expected<std::vector<Task>> model_tasks(const std::string& path, const ImportOptions& options,
                                        const Target& target, const TaskChoices& choices) {
  TW_ASSIGN(Model model, import_onnx(path, options));
  TW_TRY(round_by(choices.rounding, model.graph));
  PassContext context{target.main_device()};
  context.exact = choices.exact;
  std::vector<std::string> pipeline = default_pipeline();
  TW_CHECK(pipeline.back() == "assign-layouts", "layouts are assigned last");
  pipeline.pop_back();
  TW_TRY(run_passes(model.graph, context, pipeline));
  std::vector<LayoutPlan> plans;
  if (target.devices.empty()) { TW_ASSIGN(plans, layout_plans(model.graph, target, {})); }
  TW_TRY(run_passes(model.graph, context, {"assign-layouts"}));
  std::vector<Group> groups = fuse_groups(model.graph, &target.main_device());
  choose_algorithms(model.graph, groups, target.main_device(), {});
  if (target.devices.empty()) fuse_pools(model.graph, groups);
  TW_ASSIGN(std::vector<Task> tasks,
            tasks_of(model.graph, groups, target.main_device(), {}, TaskTexts::yes));
  for (const LayoutPlan& plan : plans) TW_TRY(add_variants(tasks, plan, target));
  leave_out(tasks, model.graph, groups, choices.refused);
  return tasks;
}

}  // namespace tw
