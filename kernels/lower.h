// Fused groups to unscheduled kernels, each by the family of its anchor (a folder of kernels/).
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

  KernelStages stages;  // for the family's schedule
};

// Errors: an op (or a case of one) that has no lowering, naming the node.
Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target);

}  // namespace tw
