// Attention in blocks with other tiles than the one that lowering chooses by cycles. A search may
// choose among them.
#pragma once
#include <vector>

#include "ir/group.h"
#include "kernels/attention/blocks.h"

namespace tw {

// Kernels with the parameters of the group's own kernel, the one with the fewest cycles by the
// count first. Empty: the group is not attention in blocks on the device.
std::vector<Lowered<AttentionBlockStages>> attention_in_other_tiles(const Graph& graph,
                                                                    const Group& group,
                                                                    const Target& device);

}  // namespace tw
