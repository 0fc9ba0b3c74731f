#include "cli/model_tasks.h"

#include "frontend/frontend.h"
#include "passes/choose_algorithms.h"

namespace tw {

Expected<std::vector<Task>> model_tasks(const std::string& path, const std::map<std::string, int64_t>& dims, const Target& target) {
  TW_ASSIGN(Model model, import_onnx(path, {dims}));
  PassContext context{target.main_device()};
  TW_TRY(run_passes(model.graph, context, default_pipeline()));
  std::vector<Group> groups = fuse_groups(model.graph);
  if (target.devices.empty()) {
    choose_algorithms(model.graph, groups, target, {});
    fuse_pools(model.graph, groups);
  }
  return tasks_of(model.graph, groups, target.main_device());
}

}  // namespace tw
