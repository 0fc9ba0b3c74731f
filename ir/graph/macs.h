// The work of a graph in multiply-accumulates: the products of convolutions, matrices and recurrent
// cells, for any sizes.
#pragma once
#include "ir/graph/graph.h"

namespace tw {

// The count in terms of the graph's symbols; 0 for other operators. An If counts the branch with
// more where both counts are numbers, otherwise the sum of both. A Loop counts its trip count, with
// the size of the last iteration for each. An unknown trip count counts as one iteration.
Expr mac_count(const Graph& graph, const Node& node);
Expr mac_count(const Graph& graph);

}  // namespace tw
