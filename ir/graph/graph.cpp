// The graph's containers: names, def-use, order. This file knows no particular operator.
#include "ir/graph/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/graph/symbol_sources.h"
#include "ir/simplify.h"

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
      const std::string* symbol = var_name(e);
      if (symbol && !std::ranges::count(symbols, *symbol)) symbols.push_back(*symbol);
    });
  if (!limits.empty())
    for (Expr& dim : type.shape)
      if (!is<expr::Var>(dim)) dim = simplify_dim(dim, limits);
  ValueId id{static_cast<int32_t>(values_.size())};
  std::string unique = unique_name(std::move(name));
  values_.push_back({std::move(type), NodeId{}, std::move(unique), std::nullopt});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string name, TensorType type, Blob blob) {
  std::optional<std::vector<int64_t>> shape = static_shape(type.shape);
  TW_CHECK(shape && type.layout.plain(), "constant '{0}' of type {1}", name, to_string(type));
  TW_CHECK(
      static_cast<int64_t>(blob.bytes.size()) == element_count(*shape) * dtype_bytes(type.dtype),
      "constant '{0}': {1} bytes for {2}", name, blob.bytes.size(), to_string(type));
  ValueId id{static_cast<int32_t>(values_.size())};
  std::string unique = unique_name(std::move(name));
  values_.push_back({std::move(type), NodeId{}, std::move(unique), std::move(blob)});
  return id;
}

ValueId Graph::add_constant(std::string name, const Tensor& tensor) {
  auto owner = std::make_shared<const std::vector<std::byte>>(tensor.bytes);
  Blob blob{owner, *owner};
  return add_constant(std::move(name),
                      TensorType{tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end()), {}},
                      std::move(blob));
}

std::vector<ValueId> Node::outputs() const {
  std::vector<ValueId> all = {output};
  all.insert(all.end(), extra.begin(), extra.end());
  return all;
}

OpAttrs Graph::within_limits(const OpAttrs& attrs) const {
  OpAttrs out = map_dims(
      attrs, [&](const Expr& dim) { return dim.defined() ? simplify_dim(dim, limits) : dim; });
  for_each_region(out, [&](Region& region) {
    auto limited = std::make_shared<Graph>(*region.graph);
    for (const std::string& symbol : limited->symbols)
      if (const auto found = limits.find(symbol); found != limits.end())
        limited->limits[symbol] = found->second;
    region.graph = std::move(limited);
  });
  return out;
}

Expected<std::vector<TensorType>> Graph::infer(const OpAttrs& attrs,
                                               const std::vector<const TensorType*>& inputs) const {
  if (limits.empty()) return infer_types(attrs, inputs);
  TW_ASSIGN(std::vector<TensorType> types, infer_types(within_limits(attrs), inputs));
  for (TensorType& type : types)
    for (Expr& dim : type.shape) dim = simplify_dim(dim, limits);
  return types;
}

Expected<ValueId> Graph::add(OpAttrs attrs, std::vector<ValueId> inputs, std::string name,
                             std::string node_name, std::string source) {
  TW_ASSIGN(const NodeId id, add_node(std::move(attrs), std::move(inputs), {std::move(name)},
                                      std::move(node_name), std::move(source)));
  return node(id).output;
}

Expected<NodeId> Graph::add_node(OpAttrs attrs, std::vector<ValueId> inputs,
                                 std::vector<std::string> names, std::string node_name,
                                 std::string source) {
  std::vector<const TensorType*> types;
  for (ValueId input : inputs) {
    TW_CHECK(input.index < static_cast<int32_t>(values_.size()), "{0} '{1}': input without a value",
             op_info(attrs).name, node_name);
    types.push_back(input.valid() ? &value(input).type : nullptr);
  }
  if (!limits.empty()) attrs = within_limits(attrs);
  Expected<std::vector<TensorType>> made = infer(attrs, types);
  if (!made) {
    std::vector<Diag> diags = take_diags(made.takeError());
    std::string where = node_name.empty() && !names.empty() ? names[0] : node_name;
    for (Diag& diag : diags)
      diag.message = op_info(attrs).name + (where.empty() ? "" : " '" + where + "'") + ": " +
                     diag.message;
    return make_error(std::move(diags));
  }
  NodeId node{static_cast<int32_t>(nodes_.size())};
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < made->size(); ++i) {
    outputs.push_back({static_cast<int32_t>(values_.size())});
    std::string unique = unique_name(i < names.size() ? std::move(names[i]) : std::string());
    values_.push_back({std::move((*made)[i]), node, std::move(unique), std::nullopt});
  }
  nodes_.push_back({std::move(attrs),
                    std::move(inputs),
                    outputs[0],
                    {outputs.begin() + 1, outputs.end()},
                    std::move(node_name),
                    std::move(source)});
  note_reads(node);
  return node;
}

Graph::Readers& Graph::readers(ValueId value) {
  const auto index = static_cast<size_t>(value.index);
  if (index >= readers_.size()) readers_.resize(values_.size());
  return readers_[index];
}

void Graph::note_reads(NodeId id) {
  for (ValueId input : node(id).inputs) {
    if (!input.valid()) continue;
    std::vector<NodeId>& nodes = readers(input).nodes;
    if (nodes.empty() || nodes.back() != id) nodes.push_back(id);
  }
}

void Graph::add_output(ValueId value, std::string name) {
  readers(value).outputs.push_back(outputs_.size());
  outputs_.push_back({value, std::move(name)});
}

const Node* Graph::def(ValueId id) const {
  if (!id.valid() || !value(id).def.valid()) return nullptr;
  return &node(value(id).def);
}

void Graph::set_output(size_t index, ValueId value) {
  outputs_[index].value = value;
  readers(value).outputs.push_back(index);
}

Tensor Graph::constant_tensor(ValueId id) const {
  TW_CHECK(is_constant(id), "not a constant");
  const Value& v = value(id);
  std::optional<std::vector<int64_t>> shape = static_shape(v.type.shape);
  TW_CHECK(shape.has_value(), "constant '{0}' of type {1}", v.name, to_string(v.type));
  return {v.type.dtype, std::move(*shape), {v.constant->bytes.begin(), v.constant->bytes.end()}};
}

// Visits depth first from every node in id order, operands before users. A graph built in order
// keeps its order, and a node that a pass adds later comes right before its first user. Nodes on a
// cycle come in some order; verify reports cycles. An operand is a value that an input names, or
// one from which a size among the attributes is read.
std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> out;
  std::vector<bool> entered(nodes_.size());
  struct Frame {
    NodeId node;
    std::vector<ValueId> operands;
    size_t next;
  };
  std::vector<Frame> stack;
  const SymbolSources sources(*this);
  auto enter = [&](NodeId id) {
    if (!id.valid() || node(id).erased || entered[static_cast<size_t>(id.index)]) return;
    entered[static_cast<size_t>(id.index)] = true;
    std::vector<ValueId> operands = node(id).inputs;
    const std::vector<ValueId> sizes = sources.of(node(id).attrs);
    operands.insert(operands.end(), sizes.begin(), sizes.end());
    stack.push_back({id, std::move(operands), 0});
  };
  for (size_t root = 0; root < nodes_.size(); ++root) {
    enter(NodeId{static_cast<int32_t>(root)});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.operands.size()) {
        ValueId operand = frame.operands[frame.next++];
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
      if (input.valid())
        out[static_cast<size_t>(input.index)].push_back(NodeId{static_cast<int32_t>(i)});
  }
  return out;
}

std::vector<std::string> Graph::all_symbols() const {
  std::vector<std::string> all = symbols;
  for (const DataSymbol& symbol : data_symbols) all.push_back(symbol.name);
  return all;
}

std::vector<ValueId> Graph::symbol_values(const OpAttrs& attrs) const {
  return SymbolSources(*this).of(attrs);
}
std::vector<ValueId> Graph::symbol_values(const std::vector<Expr>& dims) const {
  return SymbolSources(*this).of(dims);
}

std::string element_title(const Graph& graph, const DataSymbol& symbol) {
  return (symbol.needed_by.empty() ? "" : "for " + symbol.needed_by + ": ") + "element " +
         std::to_string(symbol.element) + " of '" + graph.value(symbol.value).name + "'";
}

SymbolSources::SymbolSources(const Graph& graph) {
  for (const DataSymbol& symbol : graph.data_symbols) symbols_.try_emplace(symbol.name, &symbol);
}

std::vector<ValueId> SymbolSources::of(const OpAttrs& attrs) const {
  return symbols_.empty() ? std::vector<ValueId>() : of(dims_of(attrs));
}

std::vector<ValueId> SymbolSources::of(const std::vector<Expr>& dims) const {
  std::vector<ValueId> values;
  std::vector<Expr> open = dims;
  std::set<std::string, std::less<>> seen;
  while (!open.empty()) {
    const Expr dim = open.back();
    open.pop_back();
    if (!dim.defined()) continue;
    visit(dim, [&](const Expr& e) {
      const std::string* name = var_name(e);
      if (!name || least_of(*name) != 0) return;
      const auto found = symbols_.find(*name);
      if (found == symbols_.end() || !seen.insert(*name).second) return;
      values.push_back(found->second->value);
      open.push_back(found->second->bound);
      open.push_back(found->second->equals);
    });
  }
  return values;
}

void drop_symbols_in_regions(Graph& graph) {
  const std::vector<std::string> known = graph.all_symbols();
  for (const NodeId id : graph.order()) {
    OpAttrs& attrs = graph.node(id).attrs;
    if (regions_of(attrs).empty()) continue;
    const auto* loop = std::get_if<op::Loop>(&attrs);
    const std::string iteration = loop ? loop->iteration : "";
    for_each_region(attrs, [&](Region& region) {
      Graph own = *region.graph;
      std::erase_if(own.symbols, [&](const std::string& symbol) {
        return symbol != iteration && !std::ranges::count(known, symbol);
      });
      drop_symbols_in_regions(own);
      region.graph = std::make_shared<const Graph>(std::move(own));
    });
  }
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  const Readers before = std::exchange(readers(from), {});
  for (NodeId id : before.nodes) {
    if (node(id).erased || !std::ranges::count(node(id).inputs, from)) continue;
    std::ranges::replace(node(id).inputs, from, to);
    readers(to).nodes.push_back(id);
  }
  for (size_t output : before.outputs)
    if (outputs_[output].value == from) set_output(output, to);
  for (DataSymbol& symbol : data_symbols)
    if (symbol.value == from) symbol.value = to;
}

void Graph::erase(NodeId id) {
  Node& n = node(id);
  for (ValueId made : n.outputs()) {
    for (NodeId user : readers(made).nodes)
      TW_CHECK(node(user).erased || !std::ranges::count(node(user).inputs, made),
               "'{0}' is still used by '{1}'", value(made).name, node(user).name);
    for (size_t output : readers(made).outputs)
      TW_CHECK(outputs_[output].value != made, "'{0}' is still an output", outputs_[output].name);
  }
  n.erased = true;
  n.inputs.clear();
}

void Graph::set_input(NodeId id, size_t index, ValueId value) {
  node(id).inputs.at(index) = value;
  if (value.valid()) readers(value).nodes.push_back(id);
}

void Graph::set_inputs(NodeId id, std::vector<ValueId> values) {
  node(id).inputs = std::move(values);
  note_reads(id);
}

}  // namespace tw
