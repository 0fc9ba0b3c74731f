// before: %c = conv(%x, %w)  %n = batch_norm(%c, %scale, %bias, %mean, %variance)
// after:  %n = conv(%x, %w', %b')            w' = w * scale / sqrt(variance + epsilon), computed in
//                                            double, rounded once
// Chains of batch norms and of +, -, *, / with constants are one affine function. It goes into the
// weights and the bias of the convolution or matmul in front of it. If that fails, it goes into the
// one behind it, or becomes at most one mul and one add. Why here: it needs pads inside the
// convolutions and merged duplicates, and it leaves fusion fewer operators.
#include <algorithm>
#include <cmath>

#include "passes/affine.h"
#include "passes/passes.h"

namespace tw {
namespace {

// A chain of nodes that computes an affine function of x; `links` has the nodes from first to last.
struct Chain {
  std::vector<NodeId> links;
  ValueId x;
  Affine function;
  bool has_batch_norm = false;
};

// Constant weights of a convolution or matmul, seen as [outer, count, inner] along one axis.
struct Weights {
  Tensor tensor;
  int64_t outer = 1, count = 1, inner = 1;
};

class Folder {
 public:
  Folder(Graph& graph, PassContext& context) : rewriter_(graph), graph_(graph), context_(context) {}
  bool run();

 private:
  Chain chain_to(NodeId last) const;
  bool into_producer(const Chain& chain);
  bool into_consumer(const Chain& chain);
  bool shorten(const Chain& chain);
  bool conv_producer(const Chain& chain, NodeId id);
  bool matmul_producer(const Chain& chain, NodeId id);
  bool conv_consumer(const Chain& chain, NodeId id);
  bool matmul_consumer(const Chain& chain, NodeId id);
  std::optional<Weights> weights_along(ValueId value, size_t axis);
  std::vector<double> bias_of(const Node& node, int64_t channels) const;
  ValueId new_weights(NodeId id, const char* suffix, const Tensor& tensor) {
    return rewriter_.add_constant(graph_.value(graph_.node(id).output).name + suffix, tensor);
  }
  NodeId only_user(ValueId value) const;

  Rewriter rewriter_;
  Graph& graph_;
  PassContext& context_;
};

Chain Folder::chain_to(NodeId last) const {
  Chain chain;
  std::optional<AffineNode> link = affine_node(graph_, graph_.node(last));
  while (link) {
    const DType dtype = graph_.value(link->x).type.dtype;
    std::optional<Affine> function = chain.links.empty()
                                         ? link->function
                                         : compose(link->function, chain.function, dtype);
    if (!function) break;
    chain.function = *function;
    chain.x = link->x;
    chain.has_batch_norm |= std::holds_alternative<op::BatchNorm>(graph_.node(last).attrs);
    chain.links.insert(chain.links.begin(), last);
    last = graph_.value(chain.x).def;
    link = last.valid() && rewriter_.uses(chain.x) == 1 ? affine_node(graph_, graph_.node(last))
                                                        : std::nullopt;
  }
  return chain;
}

// The only node that reads the value, once; invalid if there are more readers or an output shows
// it.
NodeId Folder::only_user(ValueId value) const {
  if (rewriter_.uses(value) != 1) return {};
  for (size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.node(NodeId{static_cast<int32_t>(i)});
    if (!node.erased &&
        std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end())
      return NodeId{static_cast<int32_t>(i)};
  }
  return {};
}

// A copy of constant float weights. nullopt if others keep using the old ones and the budget does
// not allow a copy.
std::optional<Weights> Folder::weights_along(ValueId value, size_t axis) {
  if (!graph_.is_constant(value) || !is_float(rewriter_.type(value).dtype)) return std::nullopt;
  if (rewriter_.uses(value) > 1) {
    if (constant_bytes(graph_, value) > context_.fold_budget_bytes) return std::nullopt;
    context_.fold_budget_bytes -= constant_bytes(graph_, value);
  }
  Weights weights{graph_.constant_tensor(value), 1, 1, 1};
  const std::vector<int64_t>& shape = weights.tensor.shape;
  for (size_t i = 0; i < axis; ++i) weights.outer *= shape[i];
  weights.count = shape[axis];
  for (size_t i = axis + 1; i < shape.size(); ++i) weights.inner *= shape[i];
  return weights;
}

// w[o, c, i] *= factor(o, c). Returns false if sums with the new weights may overflow or underflow
// where the scaled sums do not: a number is not moderate, or it underflows and the output has no
// larger weight. output(o, c, i) is the output of a weight; `largest` begins as the outputs' new
// biases.
template <class Factor, class Output>
bool scale_weights(Weights& weights, std::vector<double> largest, Factor factor, Output output) {
  const DType dtype = weights.tensor.dtype;
  const double limit = moderate_limit(dtype), smallest = smallest_normal(dtype);
  std::vector<bool> underflows(largest.size());
  int64_t at = 0;
  for (int64_t o = 0; o < weights.outer; ++o)
    for (int64_t c = 0; c < weights.count; ++c) {
      const double f = factor(o, c);
      if (!(std::abs(f) <= limit)) return false;
      for (int64_t i = 0; i < weights.inner; ++i, ++at) {
        const double old = weights.tensor.at(at), scaled = old * f;
        if (!(std::abs(old) <= limit) || std::abs(scaled) > limit) return false;
        const auto to = static_cast<size_t>(output(o, c, i));
        largest[to] = std::max(largest[to], std::abs(scaled));
        if (std::abs(scaled) < smallest && old != 0 && f != 0 && f != 1) underflows[to] = true;
        weights.tensor.set(at, scaled);
      }
    }
  for (size_t to = 0; to < largest.size(); ++to)
    if (underflows[to] && largest[to] < smallest) return false;
  return true;
}

bool all_finite(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (!std::isfinite(tensor.at(i))) return false;
  return true;
}

std::vector<double> magnitudes(std::vector<double> numbers) {
  for (double& x : numbers) x = std::abs(x);
  return numbers;
}

std::vector<double> Folder::bias_of(const Node& node, int64_t channels) const {
  ValueId bias = input_or_none(node, 2);
  if (!bias.valid()) return std::vector<double>(static_cast<size_t>(channels), 0.0);
  return to_doubles(graph_.constant_tensor(bias));
}

bool bias_is_constant(const Graph& graph, const Node& node) {
  ValueId bias = input_or_none(node, 2);
  return !bias.valid() || graph.is_constant(bias);
}

// For conv and conv_transpose: scales the weights of output channel m and its bias, and adds the
// shift to the bias.
bool Folder::conv_producer(const Chain& chain, NodeId id) {
  const Node& node = graph_.node(id);
  const op::ConvTranspose* transposed = get_if<op::ConvTranspose>(&node);
  if (chain.function.axis > 1 || chain.function.axis == 0 || !bias_is_constant(graph_, node))
    return false;
  std::optional<Weights> weights = weights_along(node.inputs[1], transposed ? 1 : 0);
  if (!weights) return false;
  // Weights of conv are [M, ...], so m is the axis. Those of conv_transpose are [C, M/group, ...]:
  // input channel c belongs to group c / (C/group).
  int64_t group = transposed ? transposed->group : 1, per_group = weights->outer / group;
  const auto channel = [&](int64_t o, int64_t c, int64_t = 0) {
    return transposed ? o / per_group * weights->count + c : c;
  };
  int64_t channels = weights->count * group;
  std::vector<double> bias = bias_of(node, channels);
  for (size_t m = 0; m < bias.size(); ++m)
    bias[m] = bias[m] * chain.function.scale_at(m) + chain.function.shift_at(m);
  const Tensor new_bias = from_doubles(weights->tensor.dtype, {channels}, bias);
  const auto factor = [&](int64_t o, int64_t c) {
    return chain.function.scale_at(static_cast<size_t>(channel(o, c)));
  };
  if (!all_finite(new_bias) || !scale_weights(*weights, magnitudes(bias), factor, channel))
    return false;
  bool biased = input_or_none(node, 2).valid() || chain.function.shifts();
  NodeId last = chain.links.back();
  std::vector<ValueId> inputs = {node.inputs[0], new_weights(last, "_weights", weights->tensor)};
  if (biased) inputs.push_back(new_weights(last, "_bias", new_bias));
  graph_.node(last).name = node.name;
  graph_.node(last).source = node.source;
  rewriter_.update(last, OpAttrs(node.attrs), inputs);
  return true;
}

// For matmul: scales the operand with constant weights along the output's rows or columns. The
// shift remains an add.
bool Folder::matmul_producer(const Chain& chain, NodeId id) {
  if (!chain.function.scales()) return false;
  const Node& node = graph_.node(id);
  const op::MatMul matmul = std::get<op::MatMul>(node.attrs);
  int rank = static_cast<int>(rewriter_.type(node.output).shape.size());
  for (size_t side : {size_t{1}, size_t{0}}) {
    if (chain.function.axis >= 0 && chain.function.axis != rank - (side == 1 ? 1 : 2)) continue;
    if (!graph_.is_constant(node.inputs[side])) continue;
    size_t own_rank = rewriter_.type(node.inputs[side]).shape.size();
    bool last = side == 1 ? !matmul.trans_b : matmul.trans_a;
    std::optional<Weights> weights = weights_along(node.inputs[side], own_rank - (last ? 1 : 2));
    if (!weights) continue;
    const std::vector<double> no_bias(static_cast<size_t>(weights->count));
    if (!scale_weights(
            *weights, no_bias,
            [&](int64_t, int64_t n) { return chain.function.scale_at(static_cast<size_t>(n)); },
            [](int64_t, int64_t n, int64_t) { return n; }))
      continue;
    std::vector<ValueId> inputs = node.inputs;
    NodeId end = chain.links.back();
    inputs[side] = new_weights(end, "_weights", weights->tensor);
    if (!chain.function.shifts()) {
      graph_.node(end).name = node.name;
      graph_.node(end).source = node.source;
      rewriter_.update(end, matmul, inputs);
    } else {
      ValueId product = node.output;
      rewriter_.update(id, matmul, inputs);
      const TensorType type = rewriter_.type(product);
      Tensor shift = broadcastable(chain.function, chain.function.shift, type.dtype,
                                   type.shape.size());
      rewriter_.update(end, op::Binary{BinaryOp::add},
                       {product, new_weights(end, "_shift", shift)});
    }
    return true;
  }
  return false;
}

bool Folder::into_producer(const Chain& chain) {
  NodeId id = graph_.value(chain.x).def;
  if (!id.valid() || rewriter_.uses(chain.x) != 1 || !all_plain(graph_, graph_.node(id)))
    return false;
  const OpAttrs& attrs = graph_.node(id).attrs;
  if (std::holds_alternative<op::Conv>(attrs) || std::holds_alternative<op::ConvTranspose>(attrs))
    return conv_producer(chain, id);
  return std::holds_alternative<op::MatMul>(attrs) && matmul_producer(chain, id);
}

// conv(scale * x + shift): scales the input channels of the weights. The shift goes through the
// weights into the bias, which is exact only if no padding enters a window.
bool Folder::conv_consumer(const Chain& chain, NodeId id) {
  const Node& node = graph_.node(id);
  const op::Conv& conv = std::get<op::Conv>(node.attrs);
  bool padded = std::any_of(conv.pads.begin(), conv.pads.end(),
                            [](int64_t pad) { return pad != 0; });
  if (chain.function.axis > 1 || chain.function.axis == 0 || !bias_is_constant(graph_, node))
    return false;
  if (node.inputs[0] != graph_.node(chain.links.back()).output ||
      (padded && chain.function.shifts()))
    return false;
  std::optional<Weights> weights = weights_along(node.inputs[1], 1);
  if (!weights) return false;
  int64_t channels = weights->outer, per_group = channels / conv.group;
  auto source = [&](size_t m, size_t j) {
    return m / static_cast<size_t>(per_group) * static_cast<size_t>(weights->count) + j;
  };
  std::vector<double> bias = bias_of(node, channels);
  for (size_t m = 0; m < bias.size(); ++m)
    for (int64_t j = 0; j < weights->count; ++j) {
      double shift = chain.function.shift_at(source(m, static_cast<size_t>(j)));
      int64_t at = (static_cast<int64_t>(m) * weights->count + j) * weights->inner;
      for (int64_t i = 0; i < weights->inner; ++i) bias[m] += weights->tensor.at(at + i) * shift;
    }
  const Tensor new_bias = from_doubles(weights->tensor.dtype, {channels}, bias);
  const auto factor = [&](int64_t m, int64_t j) {
    return chain.function.scale_at(source(static_cast<size_t>(m), static_cast<size_t>(j)));
  };
  if (!all_finite(new_bias) || !scale_weights(*weights, magnitudes(bias), factor,
                                              [](int64_t m, int64_t, int64_t) { return m; }))
    return false;
  bool biased = input_or_none(node, 2).valid() || chain.function.shifts();
  std::vector<ValueId> inputs = {chain.x, new_weights(id, "_weights", weights->tensor)};
  if (biased) inputs.push_back(new_weights(id, "_bias", new_bias));
  rewriter_.update(id, OpAttrs(node.attrs), inputs);
  return true;
}

// matmul(scale * x, w): scales w along the contracted axis.
bool Folder::matmul_consumer(const Chain& chain, NodeId id) {
  const Node& node = graph_.node(id);
  const op::MatMul matmul = std::get<op::MatMul>(node.attrs);
  if (chain.function.shifts()) return false;
  ValueId scaled = graph_.node(chain.links.back()).output;
  size_t side = node.inputs[0] == scaled ? 0 : 1, other = 1 - side;
  int rank = static_cast<int>(rewriter_.type(scaled).shape.size());
  bool contracts_last = side == 0 ? !matmul.trans_a : matmul.trans_b;
  if (chain.function.axis >= 0 && chain.function.axis != rank - (contracts_last ? 1 : 2))
    return false;
  size_t other_rank = rewriter_.type(node.inputs[other]).shape.size();
  bool other_last = other == 0 ? !matmul.trans_a : matmul.trans_b;
  std::optional<Weights> weights = weights_along(node.inputs[other],
                                                 other_rank - (other_last ? 1 : 2));
  if (!weights) return false;
  const std::vector<double> no_bias(static_cast<size_t>(weights->outer * weights->inner));
  if (!scale_weights(
          *weights, no_bias,
          [&](int64_t, int64_t k) { return chain.function.scale_at(static_cast<size_t>(k)); },
          [&](int64_t o, int64_t, int64_t n) { return o * weights->inner + n; }))
    return false;
  std::vector<ValueId> inputs = node.inputs;
  inputs[side] = chain.x;
  inputs[other] = new_weights(id, "_weights", weights->tensor);
  rewriter_.update(id, matmul, inputs);
  return true;
}

bool Folder::into_consumer(const Chain& chain) {
  NodeId id = only_user(graph_.node(chain.links.back()).output);
  if (!id.valid() || !all_plain(graph_, graph_.node(id))) return false;
  if (std::holds_alternative<op::Conv>(graph_.node(id).attrs)) return conv_consumer(chain, id);
  return std::holds_alternative<op::MatMul>(graph_.node(id).attrs) && matmul_consumer(chain, id);
}

// Replaces the whole chain by at most one mul and one add, if that is shorter.
bool Folder::shorten(const Chain& chain) {
  // Each node of the chain rounds to the type, and in short floats that shows.
  if (dtype_bytes(rewriter_.type(chain.x).dtype) < 4) return false;
  size_t needed = size_t{chain.function.scales()} + size_t{chain.function.shifts()};
  if (!chain.has_batch_norm && needed >= chain.links.size()) return false;
  NodeId last = chain.links.back();
  if (needed == 0) {
    rewriter_.replace(last, chain.x);
    return true;
  }
  const TensorType type = rewriter_.type(chain.x);
  auto constant = [&](const char* suffix, const std::vector<double>& numbers) {
    return new_weights(last, suffix,
                       broadcastable(chain.function, numbers, type.dtype, type.shape.size()));
  };
  ValueId x = chain.x;
  if (needed == 2)
    x = rewriter_.add(op::Binary{BinaryOp::mul}, {x, constant("_scale", chain.function.scale)},
                      last, "scaled");
  bool adds = chain.function.shifts();
  ValueId operand = adds ? constant("_shift", chain.function.shift)
                         : constant("_scale", chain.function.scale);
  rewriter_.update(last, op::Binary{adds ? BinaryOp::add : BinaryOp::mul}, {x, operand});
  return true;
}

// Goes from the outputs backwards, and so meets each chain at its last link.
bool Folder::run() {
  for (bool again = true; again;) {
    again = false;
    std::vector<bool> seen(graph_.node_count(), false);
    std::vector<NodeId> order = graph_.order();
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (graph_.node(*id).erased || seen[static_cast<size_t>(id->index)]) continue;
      Chain chain = chain_to(*id);
      for (NodeId link : chain.links) seen[static_cast<size_t>(link.index)] = true;
      if (chain.links.empty() || rewriter_.uses(graph_.node(*id).output) == 0) continue;
      again |= into_producer(chain) || into_consumer(chain) || shorten(chain);
    }
  }
  return rewriter_.changed();
}

}  // namespace

Expected<bool> fold_batch_norm(Graph& graph, PassContext& context) {
  return Folder(graph, context).run();
}

}  // namespace tw
