// Fused groups to unscheduled kernels. One file an op family; build_program.cpp calls lower_group for every group.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/program.h"
#include "passes/pass.h"

namespace tw {

// What a kernel parameter is bound to, in buffer order.
struct LoweredArgument {
  ValueId value;                       // an input or output tensor of the group; for constants where they came from
  bool constant = false;
  Blob blob;                           // constant: the source bytes
  std::shared_ptr<const Kernel> pack;  // constant: turns blob into the buffer's contents; null: as it is
};

// Which search space and default schedule serve a kernel (autotune/spaces).
enum class KernelFamily : uint8_t { elementwise, conv, depthwise, matmul, reduce, pool };
const char* family_name(KernelFamily f);

struct LoweredGroup {
  Kernel kernel;                       // unscheduled; stages as the family's file documents
  KernelFamily family = KernelFamily::elementwise;
  std::vector<LoweredArgument> arguments;
};

// Errors: an op (or a case of one) that has no lowering, naming the node.
Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target);

}  // namespace tw
