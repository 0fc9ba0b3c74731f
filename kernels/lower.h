// Lowers fused groups to unscheduled kernels. The family of the group's anchor, a folder of
// kernels/, does the work.
#pragma once
#include <utility>

#include "ir/group.h"
#include "ir/target.h"
#include "kernels/stages.h"

namespace tw {

struct LoweredGroup : GroupKernel {
  LoweredGroup() = default;
  template <class FamilyStages>
  LoweredGroup(Lowered<FamilyStages> lowered)
      : GroupKernel(std::move(static_cast<GroupKernel&>(lowered))),
        stages(std::move(lowered.stages)) {}

  KernelStages stages;
};

// 16 hex digits that stand for a definition: its kernel without the name and, unless all of them
// are plain, the layouts of its parameters.
std::string definition_hash(const Kernel& kernel, const std::vector<Layout>& layouts);
std::string definition_hash(const GroupKernel& lowered);

// Errors: an operator, or a case of one, that has no lowering; names the node.
Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target);

}  // namespace tw
