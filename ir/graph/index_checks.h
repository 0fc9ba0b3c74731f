// Indices that nobody knows before the model runs: what is looked at then.
#pragma once
#include "ir/graph/indices.h"
#include "ir/simplify.h"

namespace tw {

// All of `source` must lie in `range`; bools, which have none, must be true.
struct IndexCheck {
  ValueId source;  // made by another group than the one that reads it, or an input
  Interval range;
  std::string what;  // "index"
};
// The values that a node reads places by, or lets through (op::Within), and that cannot be shown to
// be as they must. Constants and vectors of dims are not among them.
std::vector<IndexCheck> open_indices(const Graph& graph, const Node& node);

// A condition of symbols, which may hold for all of them, under which a constant index or a dim
// lies inside of its extent. `what` names the index and its range: "index 7, expected -4 to 3".
struct IndexCondition {
  Expr holds;
  std::string what;
};
std::vector<IndexCondition> index_conditions(const Graph& graph, const Node& node);

}  // namespace tw
