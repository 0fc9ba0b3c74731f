// Chooses the family of a group by its anchor and lowers it.
#include "kernels/lower.h"

#include "ir/graph/externs.h"
#include "kernels/common/group_builder.h"
#include "kernels/device/tensor_form.h"
#include "kernels/device/tiles.h"

namespace tw {

const char* family_name(const KernelStages& stages) {
  struct Name {
    const char* operator()(const ElementwiseStages&) const { return "elementwise"; }
    const char* operator()(const ConvStages& m) const { return m.depthwise ? "depthwise" : "conv"; }
    const char* operator()(const WinogradStages&) const { return "winograd"; }
    const char* operator()(const StrassenStages&) const { return "strassen"; }
    const char* operator()(const MatMulStages&) const { return "matmul"; }
    const char* operator()(const TileStages&) const { return "tiles"; }
    const char* operator()(const ReduceStages&) const { return "reduce"; }
    const char* operator()(const PoolStages&) const { return "pool"; }
    const char* operator()(const RecurrentStages&) const { return "recurrent"; }
    const char* operator()(const AttentionStages&) const { return "attention"; }
  };
  return std::visit(Name{}, stages);
}

// Resizing needs tables of source positions, made at compile time.
static Error check_resizes(const Graph& graph, const Group& group) {
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    auto* resize = std::get_if<op::Resize>(&node.attrs);
    if (!resize) continue;
    const Shape& in = graph.value(node.inputs[0]).type.shape;
    for (size_t i = 0; i < in.size(); ++i)
      if (!is_const(simplify(in[i] - resize->shape[i]), 0) &&
          (!as_const(in[i]) || !as_const(resize->shape[i])))
        return make_error(
            DiagCode::unsupported,
            "resize (node {0}): axis {1} is resized from {2} to {3}; bind the symbols with --dim",
            node.name, i, to_string(in[i]), to_string(resize->shape[i]));
  }
  return Error::success();
}

// Behind a matrix product no softmax is fused, but in attention.
static bool holds_softmax(const Graph& graph, const Group& group) {
  for (NodeId id : group.nodes)
    if (std::holds_alternative<op::Softmax>(graph.node(id).attrs)) return true;
  return false;
}

static Expected<LoweredGroup> lower_anchor(const Graph& graph, const Group& group,
                                           const Target& target) {
  GroupBuilder b(graph, group, target);
  const Node& anchor = graph.node(group.anchor);
  const OpAttrs& attrs = anchor.attrs;
  if (int tile = winograd_tile(group.algorithm)) return lower_winograd(b, anchor, tile);
  if (group.algorithm == Algorithm::strassen) return lower_strassen(b, anchor);
  if (std::holds_alternative<op::Conv>(attrs)) {
    TW_ASSIGN(auto tiles, lower_conv_in_tiles(b, anchor));
    return tiles ? std::move(*tiles) : lower_conv(b, anchor);
  }
  if (std::holds_alternative<op::ConvTranspose>(attrs)) return lower_conv_transpose(b, anchor);
  if (std::holds_alternative<op::MatMul>(attrs) && holds_softmax(graph, group))
    return lower_attention(b, anchor);
  if (std::holds_alternative<op::MatMul>(attrs)) {
    auto tiles = lower_matmul_in_tiles(b, anchor);
    return tiles ? std::move(*tiles) : lower_matmul(b, anchor);
  }
  if (std::holds_alternative<op::MatMulNBits>(attrs)) return lower_matmul_nbits(b, anchor);
  if (std::holds_alternative<op::Pool>(attrs)) return lower_pool(b, anchor);
  if (std::holds_alternative<op::Reduce>(attrs)) return lower_reduce(b, anchor);
  if (std::holds_alternative<op::ArgReduce>(attrs)) return lower_arg_reduce(b, anchor);
  if (std::holds_alternative<op::Softmax>(attrs)) return lower_softmax(b, anchor);
  if (std::holds_alternative<op::LayerNorm>(attrs)) return lower_layer_norm(b, anchor);
  if (std::holds_alternative<op::Cumulate>(attrs)) return lower_cumulate(b, anchor);
  if (std::holds_alternative<op::Recurrent>(attrs)) return lower_recurrent(b, anchor);
  if (const Node& last = graph.node(group.nodes.back());
      std::holds_alternative<op::Concat>(last.attrs))
    return lower_concat(b, last);
  return lower_elementwise(b);
}

Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target) {
  if (const auto* call = std::get_if<op::Extern>(&graph.node(group.anchor).attrs))
    return make_error(DiagCode::unsupported, "{0} is a function of the processor's runtime library",
                      extern_info(call->function).name);
  if (!regions_of(graph.node(group.anchor).attrs).empty())
    return make_error(DiagCode::unsupported, "{0} runs graphs of its own, on the processor",
                      op_info(graph.node(group.anchor).attrs).name);
  if (Error error = check_resizes(graph, group)) return error;
  TW_ASSIGN(LoweredGroup lowered, lower_anchor(graph, group, target));
  to_tensor_form(lowered, target);
  return lowered;
}

}  // namespace tw
