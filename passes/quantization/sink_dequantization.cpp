// before: %f = dequantize(%x, %s, %z)  %p = pool(%f) kind=max  %y = max(0, %p)
// after:  %p = pool(%x) kind=max  %m = max(%z, %p)  %y = dequantize(%m, %s, %z)
// Movement, maxima, clamps and pads of dequantized values are done on the integers, exactly: the
// map from one to the other is the same for every element and rising. A concatenation that is
// quantized becomes one of quantized parts, each with its own scale. Part of fuse-quantization,
// before it looks at the operands of quantize nodes.
#include "ir/storage_types.h"
#include "passes/quantization/quantization.h"

namespace tw {
namespace {

class Sinker {
 public:
  explicit Sinker(Rewriter& rewriter) : rewriter_(rewriter), graph_(rewriter.graph()) {}

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.inputs.empty() || !all_plain(graph_, node)) return;
    if (const std::optional<Clamp> clamp = constant_clamp(graph_, node.output))
      return sink_clamp(id, *clamp);
    const std::optional<Dequantized> first = dequantized(graph_, node.inputs[0]);
    if (!first || first->by.axis >= 0) return;
    if (get_if<op::Pad>(&node)) return sink_pad(id, *first);
    if (moves_elements(node)) sink_movement(id, *first);
  }

 private:
  std::vector<ValueId> parameters_of(ValueId dequantized) const {
    const std::vector<ValueId>& inputs = graph_.def(dequantized)->inputs;
    return {inputs.begin() + 1, inputs.end()};
  }
  ValueId number(NodeId like, const char* suffix, int64_t value, DType t) {
    return rewriter_.add_constant(graph_.value(graph_.node(like).output).name + suffix,
                                  from_doubles(t, {}, {static_cast<double>(value)}));
  }
  void dequantize_behind(NodeId id, ValueId integers, const std::vector<ValueId>& parameters) {
    std::vector<ValueId> inputs = {integers};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    rewriter_.update(id, op::Dequantize{}, inputs);
  }

  void sink_movement(NodeId id, const Dequantized& first) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i = 0; i < (get_if<op::Concat>(&node) ? inputs.size() : 1); ++i) {
      const std::optional<Dequantized> part = dequantized(graph_, inputs[i]);
      if (!part || !(part->by == first.by)) return;
      inputs[i] = part->x;
    }
    const std::vector<ValueId> parameters = parameters_of(node.inputs[0]);
    dequantize_behind(id, rewriter_.add(OpAttrs(node.attrs), inputs, id, "integers"), parameters);
  }

  // Moves only clamps whose bound an integer stands for exactly.
  void sink_clamp(NodeId id, const Clamp& clamp) {
    const std::optional<Dequantized> x = dequantized(graph_, clamp.x);
    if (!x || x->by.axis >= 0) return;
    const float scale = x->by.scale[0];
    const int64_t zero = x->by.zero[0],
                  bound = quantized_number(clamp.bound, scale, zero, x->by.type);
    if (static_cast<float>(bound - zero) * scale != clamp.bound) return;
    const std::vector<ValueId> parameters = parameters_of(clamp.x);
    const ValueId limit = number(id, "_bound", bound, x->by.type);
    dequantize_behind(id, rewriter_.add(op::Binary{clamp.function}, {limit, x->x}, id, "integers"),
                      parameters);
  }

  // Moves only pads by 0, which become pads by the zero point.
  void sink_pad(NodeId id, const Dequantized& x) {
    const Node& node = graph_.node(id);
    const op::Pad pad = std::get<op::Pad>(node.attrs);
    const ValueId value = input_or_none(node, 1);
    if (pad.mode == PadMode::constant && value.valid() && splat(graph_, value) != 0.0) return;
    const std::vector<ValueId> parameters = parameters_of(node.inputs[0]);
    std::vector<ValueId> inputs = {x.x};
    if (pad.mode == PadMode::constant)
      inputs.push_back(number(id, "_zero", x.by.zero[0], x.by.type));
    dequantize_behind(id, rewriter_.add(pad, inputs, id, "integers"), parameters);
  }

  Rewriter& rewriter_;
  Graph& graph_;
};

void split_concatenation(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& quantize = graph.node(id);
  const op::Quantize attrs = std::get<op::Quantize>(quantize.attrs);
  const std::vector<ValueId> inputs = quantize.inputs;
  const std::optional<Quantization> to = quantization(graph, quantize);
  const Node* maker = graph.def(inputs[0]);
  if (!to || to->axis >= 0 || !get_if<op::Concat>(maker) || rewriter.uses(inputs[0]) != 1 ||
      !all_plain(graph, *maker))
    return;
  const op::Concat concat = std::get<op::Concat>(maker->attrs);
  std::vector<ValueId> parts = maker->inputs;
  for (ValueId& part : parts) {
    std::vector<ValueId> own = inputs;
    own[0] = part;
    part = rewriter.add(attrs, own, id, "part");
  }
  rewriter.update(id, concat, parts);
  for (const ValueId part : parts) split_concatenation(rewriter, graph.value(part).def);
}

}  // namespace

void split_concatenations(Rewriter& rewriter) {
  const Graph& graph = rewriter.graph();
  for (NodeId id : graph.order())
    if (!graph.node(id).erased && get_if<op::Quantize>(&graph.node(id)))
      split_concatenation(rewriter, id);
}

void sink_dequantization(Rewriter& rewriter) {
  Sinker sinker(rewriter);
  for (NodeId id : rewriter.graph().order())
    if (!rewriter.graph().node(id).erased) sinker.visit(id);
}

}  // namespace tw
