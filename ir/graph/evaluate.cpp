// Reference evaluation of whole graphs: binds the symbols to the inputs' shapes, then computes one
// node after the other.
#include "ir/graph/graph.h"
#include "ir/graph/symbol_sources.h"

namespace tw {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 35;

// Matches a declared shape with an actual one. A dim that is a symbol alone binds it; any other dim
// must evaluate to the actual extent.
class Binder {
 public:
  Error bind(const Graph& graph, const std::string& name, const TensorType& type,
             const Tensor& tensor) {
    if (tensor.dtype != type.dtype)
      return make_error(DiagCode::invalid_argument, "input '{0}' is {1}, expected {2}", name,
                        dtype_name(tensor.dtype), to_string(type));
    Shape actual(tensor.shape.begin(), tensor.shape.end());
    if (actual.size() != type.shape.size())
      return make_error(DiagCode::invalid_argument, "input '{0}' has shape {1}, expected {2}", name,
                        to_string(actual), to_string(type));
    for (size_t i = 0; i < actual.size(); ++i) {
      const std::string* symbol = var_name(type.shape[i]);
      if (!symbol) continue;
      const SymbolLimits limits = limits_of(graph.limits, *symbol);
      if (tensor.shape[i] < limits.least || tensor.shape[i] > limits.most)
        return make_error(
            DiagCode::invalid_argument, "input '{0}' has shape {1}: symbol {2} is {3} {4}", name,
            to_string(actual), *symbol, tensor.shape[i] < limits.least ? "at least" : "at most",
            tensor.shape[i] < limits.least ? limits.least : limits.most);
      values.try_emplace(*symbol, tensor.shape[i]);
    }
    return Error::success();
  }
  Error check(const std::string& name, const TensorType& type, const Tensor& tensor) const {
    Shape actual(tensor.shape.begin(), tensor.shape.end());
    if (equal(bind_symbols(type.shape, values), actual)) return Error::success();
    return make_error(DiagCode::invalid_argument, "input '{0}' has shape {1}, expected {2}", name,
                      to_string(actual), to_string(type));
  }
  SymbolValues values;
};

class Evaluation {
 public:
  Evaluation(const Graph& graph, SymbolValues symbols)
      : graph_(graph), symbols_(std::move(symbols)) {
    uses_.resize(graph.value_count());
    for (NodeId id : graph.order())
      for (ValueId input : graph.node(id).inputs)
        if (input.valid()) ++uses_[index(input)];
    for (const Graph::Output& output : graph.outputs()) ++uses_[index(output.value)];
    for (const DataSymbol& symbol : graph.data_symbols) ++uses_[index(symbol.value)];
    tensors_.resize(graph.value_count());
  }
  void set(ValueId id, Tensor tensor) { tensors_[index(id)] = std::move(tensor); }

  Error run(NodeId id, const std::function<Error(ValueId, const Tensor&)>& keep) {
    const Node& node = graph_.node(id);
    OpAttrs attrs = bind_symbols(node.attrs, symbols_);
    std::vector<TensorType> types(node.inputs.size());
    std::vector<const TensorType*> type_list;
    std::vector<const Tensor*> tensor_list;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor* tensor = node.inputs[i].valid() ? &get(node.inputs[i]) : nullptr;
      tensor_list.push_back(tensor);
      // Evaluators get logical tensors, so the type has no layout.
      if (tensor) types[i] = {tensor->dtype, Shape(tensor->shape.begin(), tensor->shape.end()), {}};
      type_list.push_back(tensor ? &types[i] : nullptr);
    }
    Expected<std::vector<Tensor>> result = compute(attrs, type_list, tensor_list);
    if (!result) {
      std::vector<Diag> diags = take_diags(result.takeError());
      for (Diag& diag : diags)
        diag.message =
            llvm::formatv("{0} '{1}': {2}", op_info(attrs).name, node.name, diag.message).str();
      return make_error(std::move(diags));
    }
    const std::vector<ValueId> outputs = node.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (keep) TW_TRY(keep(outputs[i], (*result)[i]));
      if (uses_[index(outputs[i])]) set(outputs[i], std::move((*result)[i]));
    }
    for (ValueId input : node.inputs)
      if (input.valid() && --uses_[index(input)] == 0) tensors_[index(input)].reset();
    return Error::success();
  }
  // Reads the symbols whose values have just become available.
  Error read_symbols() {
    for (const DataSymbol& symbol : graph_.data_symbols) {
      if (symbols_.count(symbol.name) ||
          (!tensors_[index(symbol.value)] && !graph_.is_constant(symbol.value)))
        continue;
      const Tensor& tensor = get(symbol.value);
      if (symbol.element >= tensor.size())
        return make_error(
            DiagCode::invalid_argument, "'{0}' has {1} elements, symbol {2} is number {3}",
            graph_.value(symbol.value).name, tensor.size(), symbol.name, symbol.element);
      const int64_t value = tensor.int_at(symbol.element);
      const std::optional<int64_t> most = limit(symbol.bound), exact = limit(symbol.equals);
      if (value < 0 || value > most.value_or(INT64_MAX) || value != exact.value_or(value))
        return make_error(DiagCode::invalid_argument, "{0} is {1}, expected {2}",
                          element_title(graph_, symbol), value,
                          exact  ? std::to_string(*exact)
                          : most ? "0 to " + std::to_string(*most)
                                 : "0 or more");
      symbols_[symbol.name] = value;
    }
    return Error::success();
  }

  // A constant is copied out of the graph at its first use.
  const Tensor& get(ValueId id) {
    std::optional<Tensor>& tensor = tensors_[index(id)];
    if (!tensor && graph_.is_constant(id)) tensor = graph_.constant_tensor(id);
    TW_CHECK(tensor.has_value(), "'{0}' has no value yet", graph_.value(id).name);
    return *tensor;
  }

 private:
  std::optional<int64_t> limit(const Expr& e) const {
    if (!e.defined()) return std::nullopt;
    return as_const(bind_symbols(Shape{e}, symbols_)[0]);
  }
  static size_t index(ValueId id) { return static_cast<size_t>(id.index); }
  static Expected<std::vector<Tensor>> compute(const OpAttrs& attrs,
                                               const std::vector<const TensorType*>& types,
                                               const std::vector<const Tensor*>& tensors) {
    TW_ASSIGN(const std::vector<TensorType> outs, infer_types(attrs, types));
    for (const TensorType& out : outs) {
      std::optional<std::vector<int64_t>> shape = static_shape(out.shape);
      if (!shape)
        return make_error(DiagCode::invalid_argument, "shape {0} has symbols that no input binds",
                          to_string(out.shape));
      if (element_count(*shape) > kMaxTensorBytes / dtype_bytes(out.dtype))
        return make_error(DiagCode::limit, "{0} is too large to evaluate", to_string(out));
    }
    return evaluate_node(attrs, outs, tensors);
  }

  const Graph& graph_;
  SymbolValues symbols_;
  std::vector<int> uses_;  // remaining uses of each value
  std::vector<std::optional<Tensor>> tensors_;
};

}  // namespace

Expected<std::vector<Tensor>> evaluate(const Graph& graph, const std::vector<Tensor>& inputs,
                                       const std::function<Error(ValueId, const Tensor&)>& keep) {
  if (inputs.size() != graph.inputs().size())
    return make_error(DiagCode::invalid_argument, "{0} inputs given, the graph has {1}",
                      inputs.size(), graph.inputs().size());
  Binder binder;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    TW_TRY(binder.bind(graph, value.name, value.type, inputs[i]));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    TW_TRY(binder.check(value.name, value.type, inputs[i]));
  }
  Evaluation evaluation(graph, binder.values);
  for (size_t i = 0; i < inputs.size(); ++i) evaluation.set(graph.inputs()[i], inputs[i]);
  TW_TRY(evaluation.read_symbols());
  for (NodeId id : graph.order()) {
    TW_TRY(evaluation.run(id, keep));
    TW_TRY(evaluation.read_symbols());
  }
  std::vector<Tensor> outputs;
  for (const Graph::Output& output : graph.outputs())
    outputs.push_back(evaluation.get(output.value));
  return outputs;
}

}  // namespace tw
