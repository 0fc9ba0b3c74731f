// Masks of attention by which a query sees the keys up to its own place and no later ones.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/graph/graph.h"
#include "ir/group.h"

namespace tw {

struct CausalMask {
  ValueId mask;        // [.., queries, keys] of the group's operands
  int64_t offset = 0;  // query i sees keys 0 to i + offset, 0 or more
  // Of a bool: whether true is what a query sees. Of a number that is added: what hides
  bool sees = true;
  double hidden = 0;
};
// The mask between the scores and `softmax`, both of the group; constant, or made of constants.
// None where no operand is such a mask, and where it hides few.
std::optional<CausalMask> causal_mask(const Graph& graph, const Group& group, const Node& softmax);

}  // namespace tw
