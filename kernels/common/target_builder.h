// A group's builder for families whose kernels depend on the target.
#pragma once
#include "ir/target.h"
#include "kernels/common/group_builder.h"

namespace tw {

class TargetBuilder : public GroupBuilder {
 public:
  TargetBuilder(const Graph& graph_in, const Group& group_in, const Target& target_in)
      : GroupBuilder(graph_in, group_in), target(target_in) {}

  const Target& target;
};

}  // namespace tw
