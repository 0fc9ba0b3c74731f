// The graph's containers: names, def-use, order. Nothing here knows a particular operator.
#include "ir/graph/graph.h"

#include <algorithm>

namespace tw {

std::string Graph::unique_name(std::string wanted) {
  if (wanted.empty()) wanted = "v" + std::to_string(values_.size());
  auto [it, fresh] = taken_.try_emplace(wanted, 1);
  if (fresh) return wanted;
  for (;;) {
    std::string candidate = wanted + "_" + std::to_string(it->second++);
    if (taken_.try_emplace(candidate, 1).second) return candidate;
  }
}

ValueId Graph::add_input(std::string name, TensorType type) {
  for (const Expr& dim : type.shape)
    visit(dim, [&](const Expr& e) {
      if (e->kind == ExprKind::var && !std::ranges::count(symbols, e->name)) symbols.push_back(e->name);
    });
  ValueId id{static_cast<int32_t>(values_.size())};
  std::string unique = unique_name(std::move(name));
  values_.push_back({std::move(type), NodeId{}, std::move(unique), std::nullopt});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string name, TensorType type, Blob blob) {
  std::optional<std::vector<int64_t>> shape = static_shape(type.shape);
  TW_CHECK(shape && type.layout.plain(), "constant '{0}' of type {1}", name, to_string(type));
  TW_CHECK(static_cast<int64_t>(blob.bytes.size()) == element_count(*shape) * dtype_bytes(type.dtype), "constant '{0}': {1} bytes for {2}",
           name, blob.bytes.size(), to_string(type));
  ValueId id{static_cast<int32_t>(values_.size())};
  std::string unique = unique_name(std::move(name));
  values_.push_back({std::move(type), NodeId{}, std::move(unique), std::move(blob)});
  return id;
}

ValueId Graph::add_constant(std::string name, const Tensor& tensor) {
  auto owner = std::make_shared<const std::vector<std::byte>>(tensor.bytes);
  Blob blob{owner, *owner};
  return add_constant(std::move(name), TensorType{tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end()), {}}, std::move(blob));
}

Expected<ValueId> Graph::add(OpAttrs attrs, std::vector<ValueId> inputs, std::string name, std::string node_name, std::string source) {
  std::vector<const TensorType*> types;
  for (ValueId input : inputs) {
    TW_CHECK(input.index < static_cast<int32_t>(values_.size()), "{0} '{1}': input without a value", op_info(attrs).name, node_name);
    types.push_back(input.valid() ? &value(input).type : nullptr);
  }
  Expected<TensorType> type = infer_type(attrs, types);
  if (!type) {
    std::vector<Diag> diags = take_diags(type.takeError());
    std::string where = node_name.empty() ? name : node_name;
    for (Diag& diag : diags) diag.message = op_info(attrs).name + (where.empty() ? "" : " '" + where + "'") + ": " + diag.message;
    return make_error(std::move(diags));
  }
  NodeId node{static_cast<int32_t>(nodes_.size())};
  ValueId output{static_cast<int32_t>(values_.size())};
  std::string unique = unique_name(std::move(name));
  values_.push_back({std::move(*type), node, std::move(unique), std::nullopt});
  nodes_.push_back({std::move(attrs), std::move(inputs), output, std::move(node_name), std::move(source)});
  return output;
}

void Graph::add_output(ValueId value, std::string name) { outputs_.push_back({value, std::move(name)}); }

const Node* Graph::def(ValueId id) const {
  if (!id.valid() || !value(id).def.valid()) return nullptr;
  return &node(value(id).def);
}

void Graph::set_output(size_t index, ValueId value) { outputs_[index].value = value; }

Tensor Graph::constant_tensor(ValueId id) const {
  TW_CHECK(is_constant(id), "not a constant");
  const Value& v = value(id);
  std::optional<std::vector<int64_t>> shape = static_shape(v.type.shape);
  TW_CHECK(shape.has_value(), "constant '{0}' of type {1}", v.name, to_string(v.type));
  return {v.type.dtype, std::move(*shape), {v.constant->bytes.begin(), v.constant->bytes.end()}};
}

// Depth first from every node in id order, operands before users: a graph built in order keeps its order, and a node that a
// pass made later comes right before its first user. Nodes on a cycle come in some order (verify reports cycles).
std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> out;
  std::vector<bool> entered(nodes_.size());
  struct Frame { NodeId node; size_t next; };
  std::vector<Frame> stack;
  auto enter = [&](NodeId id) {
    if (!id.valid() || node(id).erased || entered[static_cast<size_t>(id.index)]) return;
    entered[static_cast<size_t>(id.index)] = true;
    stack.push_back({id, 0});
  };
  for (size_t root = 0; root < nodes_.size(); ++root) {
    enter(NodeId{static_cast<int32_t>(root)});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const std::vector<ValueId>& operands = node(frame.node).inputs;
      if (frame.next < operands.size()) {
        ValueId operand = operands[frame.next++];
        if (operand.valid()) enter(value(operand).def);
      } else {
        out.push_back(frame.node);
        stack.pop_back();
      }
    }
  }
  return out;
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> out(values_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].erased) continue;
    for (ValueId input : nodes_[i].inputs)
      if (input.valid()) out[static_cast<size_t>(input.index)].push_back(NodeId{static_cast<int32_t>(i)});
  }
  return out;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (Node& n : nodes_)
    if (!n.erased) std::ranges::replace(n.inputs, from, to);
  for (Output& output : outputs_)
    if (output.value == from) output.value = to;
}

void Graph::erase(NodeId id) {
  Node& n = node(id);
  for (const Node& user : nodes_)
    TW_CHECK(user.erased || !std::ranges::count(user.inputs, n.output), "'{0}' is still used by '{1}'", value(n.output).name, user.name);
  for (const Output& output : outputs_) TW_CHECK(output.value != n.output, "'{0}' is still an output", output.name);
  n.erased = true;
  n.inputs.clear();
}

void Graph::set_input(NodeId id, size_t index, ValueId value) { node(id).inputs.at(index) = value; }

}  // namespace tw
