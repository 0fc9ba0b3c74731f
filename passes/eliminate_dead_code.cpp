// before: %a = exp(%x)  %b = neg(%x)  output %b
// after:  %b = neg(%x)  output %b
// Constants that nobody reads give their bytes back. That does not count as a change, as they are
// neither printed nor hashed. Why here: importing leaves shape arithmetic without users, and use
// counts decide on folding and fusion.
#include <algorithm>

#include "ir/graph/symbol_sources.h"
#include "passes/passes.h"

namespace tw {

Expected<bool> eliminate_dead_code(Graph& graph, PassContext&) {
  std::vector<bool> needed(graph.value_count(), false);
  for (const Graph::Output& output : graph.outputs())
    needed[static_cast<size_t>(output.value.index)] = true;
  const SymbolSources sources(graph);
  for (const DataSymbol& symbol : graph.data_symbols)
    if (symbol.equals.defined())  // a check at run time needs the element
      for (ValueId value : sources.of(std::vector<Expr>{var(symbol.name)}))
        needed[static_cast<size_t>(value.index)] = true;
  std::vector<NodeId> order = graph.order();
  bool changed = false;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    const std::vector<ValueId> outputs = node.outputs();
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](ValueId v) { return needed[static_cast<size_t>(v.index)]; })) {
      graph.erase(*id);
      changed = true;
      continue;
    }
    for (ValueId input : node.inputs)
      if (input.valid()) needed[static_cast<size_t>(input.index)] = true;
    for (ValueId value : sources.of(node.attrs)) needed[static_cast<size_t>(value.index)] = true;
  }
  const auto dropped = std::erase_if(graph.data_symbols, [&](const DataSymbol& symbol) {
    return !needed[static_cast<size_t>(symbol.value.index)];
  });
  if (dropped > 0) drop_symbols_in_regions(graph);
  changed |= dropped > 0;
  needed.resize(graph.value_count());
  for (size_t i = 0; i < needed.size(); ++i)
    if (!needed[i]) graph.value(ValueId{static_cast<int32_t>(i)}).constant.reset();
  return changed;
}

}  // namespace tw
