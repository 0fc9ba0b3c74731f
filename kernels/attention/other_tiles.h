// Attention in blocks in other tiles than the one that its lowering takes by the count of cycles:
// what a search may choose beside it.
#pragma once
#include <vector>

#include "ir/group.h"
#include "kernels/attention/blocks.h"

namespace tw {

// Kernels with the parameters of the group's own, the fewest cycles by the count first. Empty: the
// group is no attention in blocks on the device.
std::vector<Lowered<AttentionBlockStages>> attention_in_other_tiles(const Graph& graph,
                                                                    const Group& group,
                                                                    const Target& device);

}  // namespace tw
