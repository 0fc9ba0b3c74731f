// What a graph computes in multiply-accumulates: products of convolutions, matrices and recurrent
// cells, for any sizes.
#pragma once
#include "ir/graph/graph.h"

namespace tw {

// In terms of the graph's symbols; 0 for other operators. Of an If the branch with more where that
// can be said, else the sum of both; of a Loop all iterations below the trip count, each as the
// last one is (one iteration where the count is not known).
Expr mac_count(const Graph& graph, const Node& node);
Expr mac_count(const Graph& graph);

}  // namespace tw
