#include "kernels/common/short_operands.h"

#include <algorithm>

#include "ir/graph/short_floats.h"
#include "kernels/common/group_builder.h"

namespace tw {

Node with_short_operands(const GroupBuilder& b, const Node& node) {
  Node product = node;
  const bool tf32 = multiplies_tf32(b);
  for (size_t i = 0; i < 2; ++i) {
    const ValueId operand = node.inputs[i];
    if (const Node* made = b.inside(operand) ? b.graph.def(operand) : nullptr;
        made && (tf32 || widens_short_float(b.graph, *made) || widens_bytes(b.graph, *made)))
      product.inputs[i] = made->inputs[0];
  }
  return product;
}

Node with_short_operands(const Graph& graph, const Group& group) {
  Node product = graph.node(group.anchor);
  for (size_t i = 0; i < std::min<size_t>(2, product.inputs.size()); ++i)
    for (const NodeId id : group.nodes)
      if (const Node& made = graph.node(id);
          made.output == product.inputs[i] &&
          (widens_short_float(graph, made) || widens_bytes(graph, made))) {
        product.inputs[i] = made.inputs[0];
        break;
      }
  return product;
}

}  // namespace tw
