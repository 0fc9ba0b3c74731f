#include "passes/rewriter.h"

#include <algorithm>
#include <cstring>

namespace tw {

Rewriter::Rewriter(Graph& graph) : graph_(graph) {
  for (NodeId id : graph.order())
    for (ValueId value : graph.node(id).inputs)
      if (value.valid()) ++count(value);
  for (const Graph::Output& output : graph.outputs()) ++count(output.value);
  for (const DataSymbol& symbol : graph.data_symbols) ++count(symbol.value);
}

int& Rewriter::count(ValueId value) {
  size_t index = static_cast<size_t>(value.index);
  if (index >= uses_.size()) uses_.resize(std::max(index + 1, graph_.value_count()));
  return uses_[index];
}

int Rewriter::uses(ValueId value) const {
  size_t index = static_cast<size_t>(value.index);
  return index < uses_.size() ? uses_[index] : 0;
}

void Rewriter::release(std::vector<ValueId> values) {
  while (!values.empty()) {
    const ValueId value = values.back();
    values.pop_back();
    if (!value.valid() || --count(value) > 0) continue;
    const NodeId maker = graph_.value(value).def;
    if (!maker.valid()) continue;
    const std::vector<ValueId> made = graph_.node(maker).outputs();
    if (std::ranges::any_of(made, [&](ValueId v) { return uses(v) > 0; })) continue;
    const std::vector<ValueId> inputs = graph_.node(maker).inputs;
    graph_.erase(maker);
    values.insert(values.end(), inputs.begin(), inputs.end());
  }
}

void Rewriter::swap_names(ValueId a, ValueId b) {
  std::swap(graph_.value(a).name, graph_.value(b).name);
}

ValueId Rewriter::add(OpAttrs attrs, std::vector<ValueId> inputs, NodeId like,
                      const std::string& suffix) {
  const Node& model = graph_.node(like);
  std::string name = graph_.value(model.output).name + "_" + suffix, node_name = model.name,
              source = model.source;
  for (ValueId input : inputs)
    if (input.valid()) ++count(input);
  Expected<ValueId> made = graph_.add(std::move(attrs), std::move(inputs), name, node_name, source);
  if (!made)
    TW_UNREACHABLE("a pass made an invalid node {0}: {1}", name, error_text(made.takeError()));
  changed_ = true;
  return *made;
}

void Rewriter::update(NodeId id, OpAttrs attrs, std::vector<ValueId> inputs) {
  for (ValueId input : inputs)
    if (input.valid()) ++count(input);
  std::vector<ValueId> before = graph_.node(id).inputs;
  graph_.node(id).attrs = std::move(attrs);
  graph_.set_inputs(id, std::move(inputs));
  release(std::move(before));
  changed_ = true;
}

void Rewriter::replace(NodeId id, ValueId by) {
  ValueId from = graph_.node(id).output;
  std::vector<ValueId> inputs = graph_.node(id).inputs;
  graph_.replace_uses(from, by);
  count(by) += uses(from);
  count(from) = 0;
  graph_.erase(id);
  release(std::move(inputs));
  changed_ = true;
}

void Rewriter::replace_by_constant(NodeId id, Blob blob) {
  ValueId from = graph_.node(id).output;
  const Value& value = graph_.value(from);
  std::string name = value.name;
  TensorType type = value.type;
  ValueId constant = graph_.add_constant(name, type, std::move(blob));
  swap_names(from, constant);
  replace(id, constant);
}

void Rewriter::replace_by_constants(NodeId id, const std::vector<Tensor>& tensors) {
  const std::vector<ValueId> outputs = graph_.node(id).outputs();
  std::vector<ValueId> inputs = graph_.node(id).inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId constant = graph_.add_constant(graph_.value(outputs[i]).name, tensors[i]);
    swap_names(outputs[i], constant);
    graph_.replace_uses(outputs[i], constant);
    count(constant) += uses(outputs[i]);
    count(outputs[i]) = 0;
  }
  graph_.erase(id);
  release(std::move(inputs));
  changed_ = true;
}

void Rewriter::replace_by_constant(NodeId id, const Tensor& tensor) {
  ValueId from = graph_.node(id).output;
  std::string name = graph_.value(from).name;
  ValueId constant = graph_.add_constant(name, tensor);
  swap_names(from, constant);
  replace(id, constant);
}

}  // namespace tw
