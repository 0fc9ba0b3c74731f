// Fused groups to unscheduled kernels, each by the family of its anchor (a folder of kernels/).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/group.h"
#include "ir/program.h"
#include "ir/target.h"
#include "kernels/stages.h"

namespace tw {

// What a kernel parameter is bound to, in buffer order.
struct LoweredArgument {
  // An input or output tensor of the group; for constants where they came from
  ValueId value;
  bool constant = false;
  Blob blob;  // constant: the source bytes
  // constant: turns blob into the buffer's contents; null: as it is
  std::shared_ptr<const Kernel> pack;
};

struct LoweredGroup {
  Kernel kernel;        // unscheduled
  KernelStages stages;  // of it, for the family's schedule
  std::vector<LoweredArgument> arguments;
};

// Errors: an op (or a case of one) that has no lowering, naming the node.
Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target);

}  // namespace tw
