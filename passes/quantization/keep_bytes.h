// Float weights that nodes make of constant bytes: (w - zero) * scale.
#pragma once
#include <set>

#include "passes/pass.h"
#include "passes/rewriter.h"

namespace tw {

// The nodes that make such weights for products whose kernels widen bytes themselves (keep-bytes).
// No pass may make constants of them.
std::set<NodeId> nodes_of_kept_bytes(const Graph& graph, const PassContext& context);

}  // namespace tw
