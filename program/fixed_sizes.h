// Free dimensions that one number alone fits, by the conditions of all nodes together.
#pragma once
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/graph/graph.h"

namespace tw {

// A text for each of them, and for each that a region fixes where it runs: the number, and which
// node needs it. Those that the limits fix are not among them.
std::vector<std::string> fixed_sizes(const Graph& graph, const SymbolNames& names);

}  // namespace tw
