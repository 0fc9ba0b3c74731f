// Indices that nobody knows before the model runs: what is looked at then.
#pragma once
#include "ir/graph/indices.h"

namespace tw {

// All of `source` must lie in [-extent, extent).
struct IndexCheck {
  ValueId source;  // integers, made by another group than the one that reads them, or an input
  Expr extent;
};
// Of a node's indices those that cannot be shown to lie inside of what they are for. Constants and
// vectors of dims are not among them.
std::vector<IndexCheck> open_indices(const Graph& graph, const Node& node);

// What constant indices and vectors of dims need of the extents, as conditions of symbols. They may
// hold for all symbols.
std::vector<Expr> index_conditions(const Graph& graph, const Node& node);

}  // namespace tw
