// Products whose operands a group widens first
#pragma once
#include "ir/graph/graph.h"

namespace tw {

class GroupBuilder;
struct Group;

// The node with the operands from in front of the group's casts that widen short floats or bytes.
// An instruction for a and b then computes the sums of f32(a) * f32(b). If the group multiplies
// tf32, the operands are those from in front of the rounding.
Node with_short_operands(const GroupBuilder& b, const Node& node);
// For the group's anchor, before the group is lowered, and without tf32
Node with_short_operands(const Graph& graph, const Group& group);

}  // namespace tw
