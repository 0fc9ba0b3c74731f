// Free dimensions that admit only one size: all nodes' conditions together leave no other.
#pragma once
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/graph/graph.h"

namespace tw {

// One text for each such dimension, also for those that only a region fixes: the size, and the node
// that needs it. Dimensions that their limits fix are left out.
std::vector<std::string> fixed_sizes(const Graph& graph, const SymbolNames& names);

}  // namespace tw
