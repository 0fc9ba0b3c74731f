// Checks of indices that are unknown before the model runs.
#pragma once
#include "ir/graph/indices.h"
#include "ir/simplify.h"

namespace tw {

// Requires that all elements of `source` lie in `range`. Bools have no range; they must be true.
struct IndexCheck {
  ValueId source;  // an input, or a value that an earlier group makes
  Interval range;
  std::string what;  // "index"
};
// The values that must be checked during a run: a node reads places by them, or lets them through
// (op::Within), and no proof shows that they are in range. Constants and vectors of dims are not
// among them.
std::vector<IndexCheck> open_indices(const Graph& graph, const Node& node);

// A condition of symbols under which a constant index or a dim lies inside its extent. It holds for
// all values of the symbols or for some. `what` names the index and its range: "index 7, expected
// -4 to 3".
struct IndexCondition {
  Expr holds;
  std::string what;
};
std::vector<IndexCondition> index_conditions(const Graph& graph, const Node& node);

}  // namespace tw
