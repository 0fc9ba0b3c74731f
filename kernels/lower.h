// Fused groups to unscheduled kernels. One file an op family; build_program.cpp calls lower_group
// for every group.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/group.h"
#include "ir/program.h"
#include "ir/target.h"

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

// Which search space and default schedule serve a kernel (autotune/spaces).
enum class KernelFamily : uint8_t {
  elementwise,
  conv,
  depthwise,
  winograd,
  strassen,
  matmul,
  tiles,
  reduce,
  pool,
  recurrent,
  attention
};
const char* family_name(KernelFamily f);

struct LoweredGroup {
  Kernel kernel;  // unscheduled; stages as the family's file documents
  KernelFamily family = KernelFamily::elementwise;
  std::vector<LoweredArgument> arguments;
};

// Whether Winograd's algorithm computes the node: a 3x3 convolution of stride 1 with constant
// weights over blocked channels.
bool winograd_applies(const Graph& graph, const Node& node);
// Channel blocks that one register tile covers when there are so many tiles of the image.
int64_t winograd_vectors(int64_t blocks, int64_t tiles, const Target& target);

// Whether one level of Strassen does: a matrix product with a constant right operand, or a
// pointwise convolution of one image.
bool strassen_applies(const Graph& graph, const Node& node, const Target& target);
// Its register tile for half of the rows: channel blocks, and rows for so many of them.
int64_t strassen_vectors(int64_t half_rows, int64_t blocks, const Target& target);
int64_t strassen_rows(int64_t half_rows, int64_t vectors, const Target& target);

// Errors: an op (or a case of one) that has no lowering, naming the node.
Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target);

}  // namespace tw
