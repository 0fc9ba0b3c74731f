// Greedy and local: convolutions make blocked tensors, spatial and element-wise operators keep what they get. Reading a
// blocked tensor element by element is always possible, so casts are needed only where a kernel wants rows of plain memory.
#include "passes/assign_layouts.h"

#include <algorithm>

namespace tw {
namespace {

class LayoutAssigner {
 public:
  LayoutAssigner(Graph& graph, int64_t block) : graph_(graph), block_(block) {}

  Expected<bool> run() {
    bool changed = false;
    for (NodeId id : graph_.order()) {
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        TW_ASSIGN(bool cast, fix_input(id, i));
        changed |= cast;
      }
      const Node& node = graph_.node(id);
      if (!blocked_output(node)) continue;
      Layout layout{1, block_};
      TensorType& type = graph_.value(node.output).type;
      changed |= !(type.layout == layout);
      type.layout = layout;
    }
    std::vector<Graph::Output> outputs = graph_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (graph_.value(outputs[i].value).type.layout.plain()) continue;
      TW_ASSIGN(ValueId plain, cast(outputs[i].value, {}));
      graph_.set_output(i, plain);
      changed = true;
    }
    return changed;
  }

 private:
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  bool blocked(ValueId v) const { return v.valid() && !type(v).layout.plain(); }
  int64_t channels(const TensorType& t) const { return as_const(t.shape[1]).value_or(0); }

  Expected<ValueId> cast(ValueId v, Layout to) {
    return graph_.add(op::LayoutCast{to.axis, to.block}, {v}, "", "", "LayoutCast");
  }

  bool is_depthwise(const Node& node, const op::Conv& conv) const {
    int64_t c = channels(type(node.inputs[0]));
    return conv.group > 1 && conv.group == c && channels(type(node.output)) == c;
  }

  // Matrix products read rows; depthwise convolutions vectors of channels.
  Expected<bool> fix_input(NodeId id, size_t i) {
    const Node& node = graph_.node(id);
    ValueId v = node.inputs[i];
    if (!v.valid() || graph_.is_constant(v)) return false;
    Layout wanted = type(v).layout;
    if (std::holds_alternative<op::MatMul>(node.attrs)) wanted = {};
    if (auto* conv = std::get_if<op::Conv>(&node.attrs))
      if (i == 0 && is_depthwise(node, *conv) && blockable(node)) wanted = {1, block_};
    if (wanted == type(v).layout) return false;
    TW_ASSIGN(ValueId other, cast(v, wanted));
    graph_.set_input(id, i, other);
    return true;
  }

  bool blockable(const Node& node) const {
    const TensorType& out = type(node.output);
    return out.shape.size() >= 3 && out.dtype == DType::f32 && channels(out) > 1;
  }

  bool blocked_output(const Node& node) const {
    const TensorType& out = type(node.output);
    auto input = [&](size_t i) { return node.inputs[i]; };
    if (auto* conv = std::get_if<op::Conv>(&node.attrs)) {
      if (!blockable(node) || channels(type(input(0))) == 0) return false;
      return conv->group == 1 || is_depthwise(node, *conv) || (channels(out) / conv->group) % block_ == 0;
    }
    if (auto* conv = std::get_if<op::ConvTranspose>(&node.attrs))
      return blockable(node) && (conv->group == 1 || (channels(out) / conv->group) % block_ == 0);
    if (std::holds_alternative<op::Pool>(node.attrs)) return blocked(input(0));
    if (std::holds_alternative<op::Unary>(node.attrs) || std::holds_alternative<op::Binary>(node.attrs) ||
        std::holds_alternative<op::Select>(node.attrs) || std::holds_alternative<op::Cast>(node.attrs))
      return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return blocked(v) && same_shape(type(v), out); });
    if (auto* concat = std::get_if<op::Concat>(&node.attrs))
      return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
        return blocked(v) && (concat->axis != 1 || channels(type(v)) % block_ == 0);
      });
    if (auto* resize = std::get_if<op::Resize>(&node.attrs)) return blocked(input(0)) && resize->scales[0] == 1 && resize->scales[1] == 1;
    if (auto* pad = std::get_if<op::Pad>(&node.attrs))
      return blocked(input(0)) && is_const(pad->begins[1], 0) && is_const(pad->ends[1], 0);
    return false;
  }

  static bool same_shape(const TensorType& a, const TensorType& b) {
    if (a.shape.size() != b.shape.size()) return false;
    for (size_t i = 0; i < a.shape.size(); ++i)
      if (!equal(a.shape[i], b.shape[i])) return false;
    return true;
  }

  Graph& graph_;
  int64_t block_;
};

}  // namespace

Expected<bool> assign_layouts(Graph& graph, PassContext& context) {
  return LayoutAssigner(graph, context.target.lanes(4)).run();
}

}  // namespace tw
