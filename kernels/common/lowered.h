// A fused group as one unscheduled kernel.
#pragma once
#include <memory>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program.h"

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

struct GroupKernel {
  Kernel kernel;
  std::vector<LoweredArgument> arguments;
};

// With the stages that the schedule of its family takes.
template <class FamilyStages>
struct Lowered : GroupKernel {
  FamilyStages stages;
};

}  // namespace tw
