#include "frontend/onnx/builder.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "frontend/onnx/elements.h"
#include "ir/graph/externs.h"
#include "ir/graph/indices.h"
#include "ir/graph/symbol_sources.h"
#include "ir/size_ends.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;
// An element with more operands is computed at run time, instead of staying an expression.
constexpr int64_t kMostKnownParts = 100;

bool carries_elements(const TensorType& type) {
  if (is_float(type.dtype)) return false;
  int64_t count = 1;
  for (const Expr& dim : type.shape) {
    const std::optional<int64_t> extent = as_const(dim);
    if (!extent || *extent > kKnownElements) return false;
    count *= *extent;
    if (count > kKnownElements) return false;
  }
  return true;
}

Blob own(Tensor tensor) {
  auto owner = std::make_shared<const Tensor>(std::move(tensor));
  return {owner, owner->bytes};
}

Tensor integer_tensor(const std::vector<int64_t>& values, DType dtype, std::vector<int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<int64_t>(i), values[i]);
  return tensor;
}

}  // namespace

Val Builder::push(Entry entry) {
  entry.node = node_;
  entries_.push_back(std::move(entry));
  return Val{static_cast<int32_t>(entries_.size() - 1)};
}

Val Builder::add_input(std::string name, TensorType type) {
  return push({Kind::input, std::move(type), std::move(name), {}, {}, {}, {}, {}, {}});
}

Val Builder::add_constant(std::string name, TensorType type, Blob blob) {
  if (type.dtype == DType::string) {
    const auto bytes = static_cast<int64_t>(blob.bytes.size());
    const Val packed = add_constant(name + ".packed", {DType::u8, {Expr(bytes)}, {}},
                                    std::move(blob));
    op::Extern unpack{ExternFunction::string_const, {}, {}, {}};
    unpack.dims = std::move(type.shape);
    Expected<std::vector<Val>> made = emit_all(std::move(unpack), {packed}, {name, "Constant"});
    TW_CHECK(made, "strings '{0}': their shape was checked", name);
    set_name(made->front(), name);
    return made->front();
  }
  return push(
      {Kind::constant, std::move(type), std::move(name), std::move(blob), {}, {}, {}, {}, {}});
}

Val Builder::add_constant(const Tensor& tensor) {
  Shape shape(tensor.shape.begin(), tensor.shape.end());
  return add_constant("", {tensor.dtype, std::move(shape), {}}, own(tensor));
}

Val Builder::scalar(double value, DType dtype) {
  Val& known = scalars_[{std::bit_cast<uint64_t>(value), dtype}];
  if (!known.valid()) {
    Tensor tensor = Tensor::zeros(dtype, {});
    tensor.set(0, value);
    known = add_constant(tensor);
  }
  return known;
}

Val Builder::known(std::vector<Expr> elements, DType dtype, Shape shape) {
  std::vector<int64_t> values, extents;
  for (Expr& e : elements) e = current(e);
  for (const Expr& e : elements)
    if (const auto value = as_const(e)) values.push_back(*value);
  for (const Expr& e : shape) extents.push_back(*as_const(e));
  if (values.size() == elements.size())
    return add_constant(integer_tensor(values, dtype, std::move(extents)));
  return push(
      {Kind::known, {dtype, std::move(shape), {}}, "", {}, std::move(elements), {}, {}, {}, {}});
}

Val Builder::list(ListKind kind, std::vector<Val> items) {
  return push({Kind::list, {}, "", {}, {}, {}, std::move(items), {}, {}, kind});
}

std::optional<Builder::ListKind> Builder::list_kind(Val v) const {
  return v.valid() && entry(v).kind == Kind::list ? std::optional(entry(v).list) : std::nullopt;
}

const std::vector<Expr>* Builder::elements(Val v) {
  Entry& e = entry(v);
  if (!e.elements && e.blob && carries_elements(e.type)) {
    const std::optional<Tensor> tensor = constant(v);
    std::vector<Expr> values;
    for (int64_t i = 0; i < tensor->size(); ++i) values.emplace_back(tensor->int_at(i));
    e.elements = std::move(values);
  }
  return e.elements ? &*e.elements : nullptr;
}

std::optional<Tensor> Builder::constant(Val v) const {
  const Entry& e = entry(v);
  if (!e.blob) return std::nullopt;
  const auto shape = static_shape(e.type.shape);
  if (!shape || element_count(std::span<const int64_t>(*shape)) > kFoldElements)
    return std::nullopt;
  return Tensor{e.type.dtype, *shape, {e.blob->bytes.begin(), e.blob->bytes.end()}};
}

void Builder::set_name(Val v, const std::string& name) {
  Entry& e = entry(v);
  if (e.kind == Kind::op || e.kind == Kind::extra || e.name.empty()) e.name = name;
}

void Builder::add_symbol(const std::string& symbol) {
  if (symbols_.emplace(symbol, symbol_range(symbol)).second) symbol_order_.push_back(symbol);
}

void Builder::add_symbol(const std::string& symbol, Range range) {
  if (symbols_.emplace(symbol, std::move(range)).second) symbol_order_.push_back(symbol);
}

void Builder::add_symbol(const std::string& symbol, const std::string& name,
                         const std::optional<SymbolLimits>& limits) {
  if (limits) limits_[symbol] = *limits;
  add_symbol(symbol,
             limits ? Range{Expr(limits->least), Expr(limits->most)} : symbol_range(symbol));
  symbol_names_[symbol] = name;
}

void Builder::share_symbols(const Builder& around) {
  symbol_names_ = around.symbol_names_, limits_ = around.limits_;
  depth_ = around.depth_ + 1;
  for (const auto& [symbol, range] : around.symbols_) {
    if (!around.replaced_.count(symbol)) add_symbol(symbol, range);
    around_.insert(symbol);
  }
}

std::set<std::string> Builder::symbols_in(const std::vector<Expr>& dims) const {
  std::set<std::string> found;
  for (const Expr& dim : dims)
    visit(dim, [&](const Expr& e) {
      const std::string* name = var_name(e);
      if (name && symbol_names_.count(*name)) found.insert(*name);
    });
  return found;
}

std::set<std::string> Builder::symbols_behind(Val v) const {
  std::set<std::string> found;
  std::set<Val> seen;
  std::vector<Val> open = {v};
  for (bool first = true; !open.empty(); first = false) {
    const Val next = open.back();
    open.pop_back();
    if (!next.valid() || !seen.insert(next).second) continue;
    const Entry& e = entry(next);
    if (first) found.merge(symbols_in(e.type.shape));
    if (e.elements) found.merge(symbols_in(*e.elements));
    open.insert(open.end(), e.inputs.begin(), e.inputs.end());
  }
  return found;
}

std::set<std::string> Builder::symbols_to_bind(const OpAttrs& attrs,
                                               const std::vector<Val>& inputs) const {
  std::vector<Expr> dims;
  const auto collect = [&](const Expr& dim) { return dims.push_back(dim), dim; };
  map_dims(attrs, collect);
  for (const Val v : inputs)
    if (v.valid()) std::ranges::for_each(type(v).shape, collect);
  const std::set<std::string> symbols = symbols_in(dims);
  for (const int64_t size : {1, 2, 64, 224}) {
    const auto bound = [&](Expr dim) {
      for (const std::string& symbol : symbols)
        dim = dim.defined() ? substitute(dim, symbol, size) : dim;
      return dim.defined() ? simplified(dim) : dim;
    };
    std::vector<TensorType> types;
    std::vector<const TensorType*> given;
    for (const Val v : inputs) {
      types.push_back(v.valid() ? type(v) : TensorType());
      for (Expr& dim : types.back().shape) dim = bound(dim);
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      given.push_back(inputs[i].valid() ? &types[i] : nullptr);
    Expected<std::vector<TensorType>> made = infer_types(map_dims(attrs, bound), given);
    if (made) return symbols;
    llvm::consumeError(made.takeError());
  }
  return {};
}

// Checks constant indices. In a region they are not errors of the import, as the region may never
// run.
Error Builder::check_constant_indices(const OpAttrs& attrs, const std::vector<Val>& inputs) const {
  std::vector<const TensorType*> types;
  for (Val input : inputs) types.push_back(input.valid() ? &entry(input).type : nullptr);
  for (const IndexInput& at : index_inputs(attrs, types)) {
    const Entry& indices = entry(inputs[at.input]);
    if (depth_ > 0 || !indices.blob) continue;
    if (const auto found = extremes(indices.type, indices.blob->bytes, at.column))
      TW_TRY(check_indices(at, *found, *types[0]));
  }
  return Error::success();
}

std::optional<Val> Builder::fold(const OpAttrs& attrs, const std::vector<Val>& inputs,
                                 const TensorType& type) {
  const auto shape = static_shape(type.shape);
  // Passes need the integers behind a dequantize.
  if (!shape || inputs.empty() || std::holds_alternative<op::Dequantize>(attrs) ||
      !static_shape(tw::dims_of(attrs)))
    return std::nullopt;
  if (std::holds_alternative<op::Reshape>(attrs) && is_constant(inputs[0]))
    return add_constant("", type, *entry(inputs[0]).blob);
  if (element_count(std::span<const int64_t>(*shape)) > kFoldElements) return std::nullopt;
  std::vector<Tensor> tensors;
  for (Val input : inputs) {
    std::optional<Tensor> tensor = input.valid() ? constant(input) : std::nullopt;
    if (!tensor) return std::nullopt;
    tensors.push_back(std::move(*tensor));
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  Expected<Tensor> result = op_info(attrs).evaluate(attrs, type, pointers);
  if (result) return add_constant(*result);
  llvm::consumeError(result.takeError());
  return std::nullopt;
}

// The type with simplified dims. Errors: a negative dim, or one beyond the limits.
Expected<TensorType> Builder::checked(TensorType type) const {
  for (Expr& dim : type.shape) {
    TW_TRY(check_parts(dim));
    if (!as_const(dim)) dim = simplified(dim);
  }
  TW_TRY(check_type(type));  // the product below then fits
  int64_t count = 1;
  for (const Expr& dim : type.shape) count *= std::max<int64_t>(as_const(dim).value_or(1), 1);
  if (count > kMaxElements)
    return make_error(DiagCode::limit, "the result would have more than 2^40 elements");
  return type;
}

Expected<Val> Builder::emit(OpAttrs attrs, std::vector<Val> inputs, const Origin& origin) {
  TW_CHECK(!has_several_outputs(attrs), "{0} has several outputs", op_info(attrs).name);
  TW_ASSIGN(std::vector<TensorType> made, infer(attrs, inputs, origin));
  TW_ASSIGN(TensorType result, checked(std::move(made[0])));
  TW_TRY(check_constant_indices(attrs, inputs));
  if (std::holds_alternative<op::ShapeOf>(attrs))
    return known(entry(inputs[0]).type.shape, result.dtype, result.shape);
  if (std::optional<Val> folded = fold(attrs, inputs, result)) return *folded;
  if (carries_elements(result)) {
    std::vector<KnownInput> knowns;
    for (Val input : inputs)
      knowns.push_back(input.valid() ? KnownInput{&type(input), elements(input)} : KnownInput{});
    if (auto values = propagate(attrs, knowns, result, symbols_);
        values && std::ranges::none_of(
                      *values, [](const Expr& e) { return has_many_parts(e, kMostKnownParts); }))
      return known(std::move(*values), result.dtype, result.shape);
  }
  return push(
      {Kind::op, std::move(result), "", {}, {}, std::move(attrs), std::move(inputs), origin, {}});
}

// True if all inputs are small constants and all outputs are as small.
bool Builder::foldable(const OpAttrs& attrs, const std::vector<Val>& inputs,
                       const std::vector<TensorType>& types) const {
  const auto* call = std::get_if<op::Extern>(&attrs);
  if (!call || !extern_info(call->function).folds) return false;
  for (Val input : inputs)
    if (input.valid() && !constant(input)) return false;
  for (const TensorType& type : types) {
    const auto count = as_const(element_count(type.shape));
    if (!count || *count > kFoldElements) return false;
  }
  return true;
}

Expected<std::vector<Val>> Builder::emit_all(OpAttrs attrs, std::vector<Val> inputs,
                                             const Origin& origin) {
  TW_ASSIGN(std::vector<TensorType> results, infer(attrs, inputs, origin));
  for (TensorType& result : results) { TW_ASSIGN(result, checked(std::move(result))); }
  TW_TRY(check_constant_indices(attrs, inputs));
  std::vector<Val> made;
  if (foldable(attrs, inputs, results)) {
    std::vector<Tensor> tensors;
    std::vector<const Tensor*> pointers;
    for (Val input : inputs) tensors.push_back(input.valid() ? *constant(input) : Tensor());
    for (size_t i = 0; i < inputs.size(); ++i)
      pointers.push_back(inputs[i].valid() ? &tensors[i] : nullptr);
    TW_ASSIGN(const std::vector<Tensor> folded, evaluate_node(attrs, results, pointers));
    for (const Tensor& tensor : folded) made.push_back(add_constant(tensor));
    return made;
  }
  made.push_back(push({Kind::op,
                       std::move(results[0]),
                       "",
                       {},
                       {},
                       std::move(attrs),
                       std::move(inputs),
                       origin,
                       {}}));
  for (size_t i = 1; i < results.size(); ++i)
    made.push_back(
        push({Kind::extra, std::move(results[i]), "", {}, {}, {}, {made[0]}, origin, {}}));
  return made;
}

// A DimVector of rank 0 or 1, reshaped and cast if the value is not an i64 of that rank.
Expected<ValueId> Builder::make_known(Graph& graph, const Entry& e) {
  const bool plain = e.type.shape.size() <= 1, cast = e.type.dtype != DType::i64;
  op::DimVector vector{*e.elements, e.type.shape.empty()};
  TW_ASSIGN(ValueId value, graph.add(std::move(vector), {}, plain && !cast ? e.name : "",
                                     e.origin.node, e.origin.op));
  if (!plain) {
    TW_ASSIGN(value, graph.add(op::Reshape{e.type.shape}, {value}, cast ? "" : e.name,
                               e.origin.node, e.origin.op));
  }
  if (cast) {
    TW_ASSIGN(value, graph.add(op::Cast{e.type.dtype, false}, {value}, e.name, e.origin.node,
                               e.origin.op));
  }
  return value;
}

// An operator's further outputs come right after it on the tape.
Expected<ValueId> Builder::make_op(Graph& graph, size_t index) {
  const Entry& e = entries_[index];
  std::vector<ValueId> inputs;
  for (Val input : e.inputs) inputs.push_back(input.valid() ? entry(input).made : ValueId{});
  std::vector<std::string> names = {e.name};
  for (size_t i = index + 1; i < entries_.size() && entries_[i].kind == Kind::extra; ++i)
    names.push_back(entries_[i].name);
  TW_ASSIGN(const NodeId node, graph.add_node(*e.attrs, std::move(inputs), std::move(names),
                                              e.origin.node, e.origin.op));
  const std::vector<ValueId> extra = graph.node(node).extra;
  for (size_t i = 0; i < extra.size(); ++i) entries_[index + 1 + i].made = extra[i];
  return graph.node(node).output;
}

Expected<ValueId> Builder::make(Graph& graph, size_t index) {
  const Entry& e = entries_[index];
  switch (e.kind) {
    case Kind::constant:
      return graph.add_constant(e.name.empty() ? "const" : e.name, e.type, *e.blob);
    case Kind::known: return make_known(graph, e);
    case Kind::op: return make_op(graph, index);
    case Kind::input:
    case Kind::extra: return e.made;
    case Kind::list: break;
  }
  TW_UNREACHABLE("a list in the graph");
}

// The entries that the outputs need. They are ordered by ONNX node, and within a node by a walk
// from the outputs, operands first.
std::vector<size_t> Builder::needed_in_order(const std::vector<Output>& outputs) {
  enum class State : uint8_t { unseen, open, listed };
  std::vector<State> states(entries_.size(), State::unseen);
  std::vector<size_t> order, open;
  std::vector<Val> roots;
  std::multimap<Val, const Symbol*> read_from;
  for (const Symbol& symbol : data_symbols_) read_from.emplace(symbol.value, &symbol);
  const auto index = [](Val v) { return static_cast<size_t>(v.index); };
  for (const Output& output : outputs) roots.push_back(output.value);
  for (const Symbol& symbol : data_symbols_)
    if (symbol.equals.defined()) add_symbol_values({symbol.equals, var(symbol.name)}, roots);
  for (size_t root = 0; root < roots.size(); ++root) {
    open.push_back(index(roots[root]));
    while (!open.empty()) {
      const size_t next = open.back();
      if (states[next] == State::unseen) {
        states[next] = State::open;
        for (Val input : std::views::reverse(entries_[next].inputs))
          if (input.valid() && states[index(input)] == State::unseen) open.push_back(index(input));
        continue;
      }
      open.pop_back();
      if (states[next] == State::listed) continue;
      states[next] = State::listed;
      order.push_back(next);
      const auto [first, last] = read_from.equal_range(Val{static_cast<int32_t>(next)});
      for (auto read = first; read != last; ++read)
        add_symbol_values({read->second->bound, read->second->equals}, roots);
      if (entries_[next].attrs) add_symbol_values(tw::dims_of(*entries_[next].attrs), roots);
      if (entries_[next].elements) add_symbol_values(*entries_[next].elements, roots);
    }
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return entries_[i].node; });
  return order;
}

Expected<Graph> Builder::finish(const std::string& name, const std::vector<Output>& outputs) {
  Graph graph;
  graph.name = name;
  graph.symbols = symbol_order_;
  for (const auto& [symbol, limits] : limits_)
    if (std::ranges::count(symbol_order_, symbol)) graph.limits[symbol] = limits;
  for (Entry& e : entries_)  // a graph made before leaves its values behind
    e.made = e.kind == Kind::input ? graph.add_input(e.name, e.type) : ValueId();
  for (size_t i : needed_in_order(outputs)) { TW_ASSIGN(entries_[i].made, make(graph, i)); }
  for (const Symbol& s : data_symbols_)
    if (entry(s.value).made.valid())
      graph.data_symbols.push_back(
          {s.name, entry(s.value).made, s.element, s.bound, s.equals, s.needed_by});
  for (const Output& output : outputs) graph.add_output(entry(output.value).made, output.name);
  drop_symbols_in_regions(graph);
  return graph;
}

}  // namespace tw::onnx_import
