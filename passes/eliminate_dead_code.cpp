// before: %a = exp(%x)  %b = neg(%x)  output %b
// after:  %b = neg(%x)  output %b
// Why here: importing leaves shape arithmetic without users, and use counts decide what may be folded and fused.
#include "passes/passes.h"

namespace tw {

Expected<bool> eliminate_dead_code(Graph& graph, PassContext&) {
  std::vector<bool> needed(graph.value_count(), false);
  for (const Graph::Output& output : graph.outputs()) needed[static_cast<size_t>(output.value.index)] = true;
  std::vector<NodeId> order = graph.order();
  bool changed = false;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    if (!needed[static_cast<size_t>(node.output.index)]) {
      graph.erase(*id);
      changed = true;
      continue;
    }
    for (ValueId input : node.inputs)
      if (input.valid()) needed[static_cast<size_t>(input.index)] = true;
  }
  return changed;
}

}  // namespace tw
