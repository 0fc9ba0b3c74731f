// Rules that recognize normalizations written as several operators: exponentials over their sum,
// deviations over their root mean square. The operator itself is one kernel.
#include <algorithm>

#include "passes/canonicalize/canonicalize.h"

namespace tw {
namespace {

// value / divisor, in any of its forms. If `root` is true, the true divisor is the square root of
// `divisor`.
struct Quotient {
  ValueId value, divisor;
  bool root = false;
};

Quotient quotient(const Graph& graph, ValueId value, ValueId divisor) {
  const Node* root = graph.def(divisor);
  return is_unary(root, UnaryOp::sqrt) ? Quotient{value, root->inputs[0], true}
                                       : Quotient{value, divisor};
}

std::vector<Quotient> quotients(const Graph& graph, const Node& node) {
  if (is_binary(&node, BinaryOp::div)) return {quotient(graph, node.inputs[0], node.inputs[1])};
  std::vector<Quotient> found;
  if (!is_binary(&node, BinaryOp::mul)) return found;
  for (size_t side : {size_t{0}, size_t{1}}) {
    const ValueId value = node.inputs[side];
    const Node* inverse = graph.def(node.inputs[1 - side]);
    if (is_unary(inverse, UnaryOp::rsqrt)) found.push_back({value, inverse->inputs[0], true});
    if (is_binary(inverse, BinaryOp::div) && splat(graph, inverse->inputs[0]) == 1.0)
      found.push_back(quotient(graph, value, inverse->inputs[1]));
  }
  return found;
}

// A tensor and the axes over which it is reduced
struct OverAxes {
  ValueId x;
  Ints axes;
};
// The operand and axes of a reduction of this kind that keeps its axes; nullopt for other values.
std::optional<OverAxes> reduction(const Graph& graph, ValueId v, ReduceKind kind) {
  const Node* node = graph.def(v);
  const op::Reduce* reduce = get_if<op::Reduce>(node);
  if (!reduce || reduce->kind != kind || !reduce->keep) return std::nullopt;
  return OverAxes{node->inputs[0], reduce->axes};
}

std::optional<OverAxes> shifted(const Graph& graph, ValueId v, ReduceKind kind) {
  const Node* node = graph.def(v);
  if (!is_binary(node, BinaryOp::sub)) return std::nullopt;
  std::optional<OverAxes> by = reduction(graph, node->inputs[1], kind);
  return by && by->x == node->inputs[0] ? by : std::nullopt;
}

// Matches exp(x - max(x)) along one axis.
std::optional<OverAxes> exponentials(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  if (!is_unary(node, UnaryOp::exp)) return std::nullopt;
  std::optional<OverAxes> from = shifted(graph, node->inputs[0], ReduceKind::max);
  return from && from->axes.size() == 1 ? from : std::nullopt;
}

// e / sum(e) -> softmax(x), with e = exp(x - max(x))
bool recognize_softmax(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  for (const Quotient& quotient : quotients(graph, rewriter.node(id))) {
    const std::optional<OverAxes> from = exponentials(graph, quotient.value);
    if (!from || quotient.root) continue;
    const auto sum = reduction(graph, quotient.divisor, ReduceKind::sum);
    if (!sum || sum->x != quotient.value || sum->axes != from->axes) continue;
    rewriter.update(id, op::Softmax{from->axes[0]}, {from->x});
    return true;
  }
  return false;
}

// d - log(sum(exp(d))) -> log-softmax(x), with d = x - max(x)
bool recognize_log_softmax(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = rewriter.node(id);
  if (!is_binary(&node, BinaryOp::sub)) return false;
  const Node* log = graph.def(node.inputs[1]);
  if (!is_unary(log, UnaryOp::log)) return false;
  const auto sum = reduction(graph, log->inputs[0], ReduceKind::sum);
  if (!sum) return false;
  const std::optional<OverAxes> from = exponentials(graph, sum->x);
  if (!from || sum->axes != from->axes || graph.def(sum->x)->inputs[0] != node.inputs[0])
    return false;
  rewriter.update(id, op::Softmax{from->axes[0], true}, {from->x});
  return true;
}

// The first of the axes, if they are the last axes of a tensor of this rank.
std::optional<int64_t> first_of_tail(const Ints& axes, size_t rank) {
  if (axes.empty()) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(rank - axes.size() + i)) return std::nullopt;
  return axes.front();
}

// Replaces the node by the norm between two reshapes, which make its axes one axis and undo that.
void norm_in_rows(Rewriter& rewriter, NodeId id, const op::LayerNorm& norm,
                  std::vector<ValueId> inputs) {
  const Shape whole = rewriter.type(inputs[0]).shape;
  const auto tail = whole.begin() + norm.axis;
  Shape rows(whole.begin(), tail);
  rows.push_back(element_count(Shape(tail, whole.end())));
  inputs[0] = rewriter.add(op::Reshape{rows}, {inputs[0]}, id, "rows");
  rewriter.update(id, op::Reshape{whole}, {rewriter.add(norm, inputs, id, "normed")});
}

// d / sqrt(mean(d * d) + epsilon) -> layer_norm, for d = x - mean(x) or any other d
bool recognize_layer_norm(Rewriter& rewriter, NodeId id) {
  Graph& graph = rewriter.graph();
  const Node& node = rewriter.node(id);
  for (const Quotient& quotient : quotients(graph, node)) {
    const Node* sum = graph.def(quotient.divisor);
    if (!quotient.root || !is_binary(sum, BinaryOp::add)) continue;
    const std::optional<double> epsilon = splat(graph, sum->inputs[1]);
    const auto mean = reduction(graph, sum->inputs[0], ReduceKind::mean);
    if (!epsilon || *epsilon < 0 || !mean) continue;
    const Node* square = graph.def(mean->x);
    if (!is_binary(square, BinaryOp::mul) || square->inputs[0] != quotient.value ||
        square->inputs[1] != quotient.value)
      continue;
    const TensorType& type = rewriter.type(quotient.value);
    const std::optional<int64_t> axis = first_of_tail(mean->axes, type.shape.size());
    if (!axis || !equal(type, rewriter.type(node.output))) continue;
    const std::optional<OverAxes> from = shifted(graph, quotient.value, ReduceKind::mean);
    const bool centred = from && from->axes == mean->axes;
    const ValueId x = centred ? from->x : quotient.value;
    // Several axes become one only behind a reshape, whose result is row-major anyway; other values
    // may have blocked layouts.
    const bool flat = mean->axes.size() == 1;
    if (!flat && !get_if<op::Reshape>(graph.def(x))) continue;
    const ValueId scale = rewriter.add_constant(graph.value(node.output).name + "_one",
                                                from_doubles(type.dtype, {}, {1}));
    const op::LayerNorm norm{*axis, *epsilon, centred};
    if (flat) rewriter.update(id, norm, {x, scale});
    else norm_in_rows(rewriter, id, norm, {x, scale});
    return true;
  }
  return false;
}

// The constant as an operand over the axes from `axis` on; nullopt if it varies along axes in front
// of them.
std::optional<ValueId> parameter_of(Rewriter& rewriter, ValueId constant, const Shape& shape,
                                    size_t axis) {
  const Graph& graph = rewriter.graph();
  if (!graph.is_constant(constant)) return std::nullopt;
  const size_t most = shape.size() - axis, rank = rewriter.type(constant).shape.size();
  if (rank <= most) return constant;
  Tensor tensor = graph.constant_tensor(constant);
  const auto end = tensor.shape.begin() + static_cast<ptrdiff_t>(rank - most);
  if (std::any_of(tensor.shape.begin(), end, [](int64_t extent) { return extent != 1; }))
    return std::nullopt;
  tensor.shape.erase(tensor.shape.begin(), end);
  return rewriter.add_constant(graph.value(constant).name + "_tail", tensor);
}

// layer_norm(x, 1) * c -> layer_norm(x, c); layer_norm(x, s) + c -> layer_norm(x, s, c)
bool parameters_into_layer_norm(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = rewriter.node(id);
  const bool scales = is_binary(&node, BinaryOp::mul);
  if (!scales && !is_binary(&node, BinaryOp::add)) return false;
  const Node* maker = graph.def(node.inputs[0]);
  const op::LayerNorm* norm = get_if<op::LayerNorm>(maker);
  if (!norm || rewriter.uses(node.inputs[0]) != 1 || input_or_none(*maker, 2).valid()) return false;
  if (scales && splat(graph, maker->inputs[1]) != 1.0) return false;
  const TensorType& type = rewriter.type(node.output);
  if (!equal(rewriter.type(node.inputs[0]), type)) return false;
  const std::optional<ValueId> c = parameter_of(rewriter, node.inputs[1], type.shape,
                                                static_cast<size_t>(norm->axis));
  if (!c) return false;
  std::vector<ValueId> inputs = {maker->inputs[0], maker->inputs[1]};
  if (scales) inputs[1] = *c;
  else inputs.push_back(*c);
  rewriter.update(id, *norm, inputs);
  return true;
}

}  // namespace

std::span<const Rule> normalization_rules() {
  static constexpr Rule kRules[] = {
      {"recognize-softmax", when_plain<recognize_softmax>},
      {"recognize-log-softmax", when_plain<recognize_log_softmax>},
      {"recognize-layer-norm", when_plain<recognize_layer_norm>},
      {"parameters-into-layer-norm", when_plain<parameters_into_layer_norm>},
  };
  return kRules;
}

}  // namespace tw
