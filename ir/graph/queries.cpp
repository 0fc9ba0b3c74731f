#include "ir/graph/queries.h"

#include <cmath>
#include <cstring>

namespace tw {

bool is_binary(const Node* node, BinaryOp function) {
  const op::Binary* binary = get_if<op::Binary>(node);
  return binary && binary->function == function;
}

bool is_unary(const Node* node, UnaryOp function) {
  const op::Unary* unary = get_if<op::Unary>(node);
  return unary && unary->function == function;
}

ValueId input_or_none(const Node& node, size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : ValueId{};
}

bool all_plain(const Graph& graph, const Node& node) {
  for (ValueId input : node.inputs)
    if (input.valid() && !graph.value(input).type.layout.plain()) return false;
  for (ValueId output : node.outputs())
    if (!graph.value(output).type.layout.plain()) return false;
  return true;
}

int64_t constant_bytes(const Graph& graph, ValueId constant) {
  return static_cast<int64_t>(graph.value(constant).constant->bytes.size());
}

std::optional<double> splat(const Graph& graph, ValueId value) {
  if (!graph.is_constant(value)) return std::nullopt;
  DType dtype = graph.value(value).type.dtype;
  std::span<const std::byte> bytes = graph.value(value).constant->bytes;
  size_t width = static_cast<size_t>(dtype_bytes(dtype));
  if (bytes.size() < width) return std::nullopt;
  for (size_t at = width; at + width <= bytes.size(); at += width)
    if (std::memcmp(bytes.data(), bytes.data() + at, width) != 0) return std::nullopt;
  Tensor one{dtype, {}, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width)}};
  if (!is_float(dtype) && dtype_bytes(dtype) == 8 && std::abs(one.int_at(0)) > (int64_t{1} << 53))
    return std::nullopt;
  return one.at(0);
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.at(static_cast<int64_t>(i));
  return values;
}

Tensor from_doubles(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  TW_CHECK(tensor.size() == static_cast<int64_t>(values.size()), "{0} values for {1} elements",
           values.size(), tensor.size());
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

TensorType type_of(const Tensor& tensor) {
  TensorType type{tensor.dtype, {}, {}};
  for (int64_t extent : tensor.shape) type.shape.push_back(extent);
  return type;
}

Expected<Tensor> evaluate_op(const OpAttrs& attrs, const std::vector<const Tensor*>& inputs) {
  std::vector<TensorType> types(inputs.size());
  std::vector<const TensorType*> type_pointers(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    types[i] = type_of(*inputs[i]);
    type_pointers[i] = &types[i];
  }
  TW_ASSIGN(TensorType out, infer_type(attrs, type_pointers));
  return op_info(attrs).evaluate(attrs, out, inputs);
}

}  // namespace tw
