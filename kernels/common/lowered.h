// A fused group as one unscheduled kernel
#pragma once
#include <memory>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program.h"

namespace tw {

// The tensor or constant to which a kernel parameter is bound. Arguments are in buffer order.
struct LoweredArgument {
  // An input or output tensor of the group; a constant: the value from which it was made
  ValueId value;
  bool constant = false;
  Blob blob;  // constant: source bytes
  // constant: makes the buffer's contents from blob; null: blob is the contents
  std::shared_ptr<const Kernel> pack;
  // Blocks in which the tensor lies. The schedule begins with them (kernels/arranged.h), as the
  // kernel's parameter has the tensor's own dimensions.
  Layout layout{};
};

struct GroupKernel {
  Kernel kernel;
  std::vector<LoweredArgument> arguments;
};

// The kernel with the stages that its family's schedule uses
template <class FamilyStages>
struct Lowered : GroupKernel {
  FamilyStages stages;
};

}  // namespace tw
