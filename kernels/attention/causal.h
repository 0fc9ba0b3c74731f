// Causal masks of attention: a query sees the keys up to its own place and no later ones.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/graph/graph.h"
#include "ir/group.h"

namespace tw {

struct CausalMask {
  ValueId mask;        // [.., queries, keys], an operand of the group
  int64_t offset = 0;  // query i sees keys 0 to i + offset; >= 0
  // Bool mask: the value at keys that a query sees. Added number: the number that hides a key.
  bool sees = true;
  double hidden = 0;
};
// The mask between the scores and `softmax`, both in the group. It is constant or made of
// constants. nullopt: no operand is such a mask, or it hides few keys.
std::optional<CausalMask> causal_mask(const Graph& graph, const Group& group, const Node& softmax);

}  // namespace tw
