#include "passes/quantization/quantization.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/group.h"
#include "ir/storage_types.h"

namespace tw {

std::optional<Quantization> quantization(const Graph& graph, const Node& node) {
  const auto* quantize = std::get_if<op::Quantize>(&node.attrs);
  const auto* dequantize = std::get_if<op::Dequantize>(&node.attrs);
  if (!quantize && !dequantize) return std::nullopt;
  const ValueId scale = node.inputs[1], zero = input_or_none(node, 2);
  if (!graph.is_constant(scale) || graph.value(scale).type.dtype != DType::f32 ||
      (zero.valid() && !graph.is_constant(zero)))
    return std::nullopt;
  const Tensor scales = graph.constant_tensor(scale),
               zeros = zero.valid() ? graph.constant_tensor(zero) : Tensor::zeros(DType::i8, {});
  const int64_t count = std::max(scales.size(), zeros.size());
  Quantization q;
  q.type = quantize ? quantize->to : graph.value(node.inputs[0]).type.dtype;
  if (is_storage_only(q.type)) return std::nullopt;  // nothing is computed in them
  for (int64_t i = 0; i < count; ++i) {
    q.scale.push_back(static_cast<float>(scales.at(scales.size() == 1 ? 0 : i)));
    q.zero.push_back(zeros.int_at(zeros.size() == 1 ? 0 : i));
    if (!(q.scale.back() > 0) || std::isinf(q.scale.back())) return std::nullopt;
  }
  const auto rank = static_cast<int64_t>(graph.value(node.output).type.shape.size());
  const int64_t axis = quantize ? quantize->axis : dequantize->axis;
  if (count != 1) q.axis = axis < 0 ? axis + rank : axis;
  return q;
}

std::optional<Dequantized> dequantized(const Graph& graph, ValueId value) {
  const Node* node = value.valid() ? graph.def(value) : nullptr;
  if (!get_if<op::Dequantize>(node)) return std::nullopt;
  std::optional<Quantization> by = quantization(graph, *node);
  if (!by) return std::nullopt;
  return Dequantized{node->inputs[0], std::move(*by)};
}

std::optional<Clamp> constant_clamp(const Graph& graph, ValueId value) {
  const Node* node = graph.def(value);
  const auto* binary = get_if<op::Binary>(node);
  if (!binary || (binary->function != BinaryOp::max && binary->function != BinaryOp::min))
    return std::nullopt;
  for (size_t side : {size_t{0}, size_t{1}}) {
    const std::optional<double> bound = splat(graph, node->inputs[side]);
    const ValueId x = node->inputs[1 - side];
    if (bound && equal(graph.value(x).type.shape, graph.value(value).type.shape))
      return Clamp{x, binary->function, static_cast<float>(*bound)};
  }
  return std::nullopt;
}

bool moves_elements(const Node& node) {
  const auto* pool = get_if<op::Pool>(&node);
  const auto* resize = get_if<op::Resize>(&node);
  return (pool && pool->kind == PoolKind::max) || get_if<op::Reshape>(&node) ||
         get_if<op::Transpose>(&node) || get_if<op::Slice>(&node) || get_if<op::Concat>(&node) ||
         get_if<op::Gather>(&node) || get_if<op::Expand>(&node) ||
         (resize && resize->mode == ResizeMode::nearest);
}

int64_t quantized_number(float x, float scale, int64_t zero, DType to) {
  const double rounded = static_cast<double>(std::nearbyint(x / scale)) + static_cast<double>(zero);
  return static_cast<int64_t>(
      std::clamp(rounded, static_cast<double>(lowest_of(to)), static_cast<double>(highest_of(to))));
}

namespace {

std::string word_of(const Node& node) {
  if (const auto* unary = get_if<op::Unary>(&node)) return op_name(unary->function);
  if (const auto* binary = get_if<op::Binary>(&node)) return op_name(binary->function);
  return op_info(node.attrs).name;
}

// True for integers that may stand for floats, and for sums of their products.
bool is_number(DType t) {
  return !is_float(t) && t != DType::boolean && t != DType::string && dtype_bytes(t) <= 4;
}

// True if the graph has quantized operators. Small integers alone may be pictures, which a resize
// turns into floats and rounds again.
bool has_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](NodeId id) {
    const Node& node = graph.node(id);
    if (get_if<op::Quantize>(&node) || get_if<op::Dequantize>(&node)) return true;
    const bool product = get_if<op::Conv>(&node) || get_if<op::MatMul>(&node);
    return (product && !is_float(graph.value(node.inputs.front()).type.dtype)) ||
           std::ranges::any_of(regions_of(node.attrs),
                               [](const Graph* region) { return has_quantized(*region); });
  });
}

// The operators that read floats made of integers and make floats that become integers. An
// element-wise operator joins the kernels around it, so it counts only if it reads the result of a
// Dequantize.
class FloatsBetween {
 public:
  explicit FloatsBetween(const Graph& graph)
      : graph_(graph), order_(graph.order()), from_(graph.value_count()), to_(graph.value_count()) {
    for (const NodeId id : order_) follow(graph.node(id));
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) trace(graph.node(*id));
  }

  void count(std::map<std::string, int>& found) const {
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (reads_dequantized(node) || is_between(node)) ++found[word_of(node)];
      for (const Graph* region : regions_of(node.attrs)) FloatsBetween(*region).count(found);
    }
  }

 private:
  DType type(ValueId v) const { return graph_.value(v).type.dtype; }
  size_t at(ValueId v) const { return static_cast<size_t>(v.index); }
  bool varies(ValueId v) const { return v.valid() && !graph_.is_constant(v); }

  void follow(const Node& node) {
    const bool made = std::ranges::any_of(node.inputs, [&](ValueId v) {
      return varies(v) && (from_[at(v)] || (is_elementwise(node) && is_number(type(v))));
    });
    for (const ValueId v : node.outputs()) from_[at(v)] = made && is_float(type(v));
  }

  void trace(const Node& node) {
    const bool wanted = std::ranges::any_of(node.outputs(), [&](ValueId v) {
      return is_float(type(v))
                 ? to_[at(v)]
                 : is_elementwise(node) && is_number(type(v)) && dtype_bytes(type(v)) <= 2;
    });
    for (const ValueId v : node.inputs)
      if (wanted && varies(v) && is_float(type(v))) to_[at(v)] = true;
  }

  bool reads_dequantized(const Node& node) const {
    if (get_if<op::Quantize>(&node) || get_if<op::Dequantize>(&node)) return false;
    return std::ranges::any_of(node.inputs, [&](ValueId v) {
      const std::optional<Dequantized> x = dequantized(graph_, v);
      return x && !graph_.is_constant(x->x);
    });
  }

  // The range of a DynamicQuantizeLinear does not count
  bool is_between(const Node& node) const {
    if (is_elementwise(node) || moves_elements(node) || get_if<op::LayoutCast>(&node) ||
        node.source.starts_with("DynamicQuantize"))
      return false;
    const bool from = std::ranges::any_of(node.inputs,
                                          [&](ValueId v) { return varies(v) && from_[at(v)]; });
    return from && std::ranges::any_of(node.outputs(), [&](ValueId v) { return to_[at(v)] != 0; });
  }

  const Graph& graph_;
  const std::vector<NodeId> order_;
  std::vector<char> from_, to_;  // by value: made of integers; becomes integers
};

}  // namespace

std::string floats_between(const Graph& graph) {
  if (!has_quantized(graph)) return "";
  std::map<std::string, int> found;
  FloatsBetween(graph).count(found);
  std::string list;
  for (const auto& [name, count] : found)
    list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  return list;
}

}  // namespace tw
