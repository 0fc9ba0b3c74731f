#include "passes/match_attention.h"

#include <algorithm>
#include <set>

#include "ir/graph/short_floats.h"
#include "ir/group.h"
#include "passes/pass.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

class Matcher {
 public:
  Matcher(const Graph& graph, const std::function<std::vector<NodeId>(ValueId)>& users,
          const std::function<bool(ValueId)>& is_output)
      : graph_(graph), users_(users), is_output_(is_output) {}

  std::optional<Attention> run(NodeId softmax) {
    const Node& node = graph_.node(softmax);
    const auto* attrs = get_if<op::Softmax>(&node);
    const TensorType& type = type_of(node.output);
    auto rank = static_cast<int64_t>(type.shape.size());
    if (!attrs || attrs->log || (attrs->axis != -1 && attrs->axis != rank - 1) ||
        !serves(type.dtype) || rank < 2)
      return std::nullopt;
    if (auto rows = as_const(type.shape[type.shape.size() - 2]); rows && *rows < 2)
      return std::nullopt;
    match_.softmax = softmax;
    claim(softmax);
    const ValueId weights = rounded(node.output);
    NodeId product = only_user(weights);
    const auto* second = product.valid() ? get_if<op::MatMul>(&graph_.node(product)) : nullptr;
    if (!second || second->trans_a || graph_.node(product).inputs[0] != weights ||
        graph_.node(product).inputs[1] == weights)
      return std::nullopt;
    if (!equal(batch_of(type.shape), batch_of(type_of(graph_.node(product).output).shape)))
      return std::nullopt;
    match_.product = product;
    claim(product);
    if (!take_scores(node)) return std::nullopt;
    const Node& scores = graph_.node(match_.scores);
    if (get_if<op::MatMul>(&scores)->trans_a || !as_const(type_of(scores.inputs[0]).shape.back()))
      return std::nullopt;
    if (!as_const(type_of(graph_.node(product).output).shape.back())) return std::nullopt;
    if (type_of(scores.output).dtype != type.dtype ||
        type_of(graph_.node(product).output).dtype != type.dtype)
      return std::nullopt;
    if (!equal(type_of(scores.output).shape, type.shape)) return std::nullopt;
    for (ValueId v : {scores.inputs[0], scores.inputs[1], graph_.node(product).inputs[1]})
      if (graph_.is_constant(v)) return std::nullopt;
    for (ValueId v : {scores.inputs[0], scores.inputs[1], graph_.node(product).inputs[1]})
      take_movement(take_rounding(v));
    take_rounding(weights);
    take_merge();
    match_.nodes.assign(claimed_.begin(), claimed_.end());
    return match_;
  }

 private:
  const TensorType& type_of(ValueId v) const { return graph_.value(v).type; }
  static Shape batch_of(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }
  static bool serves(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }
  void claim(NodeId id) { claimed_.insert(id); }
  NodeId only_user(ValueId v) const {
    if (is_output_(v)) return {};
    std::vector<NodeId> users = users_(v);
    return users.size() == 1 ? users[0] : NodeId{};
  }
  bool read_inside_only(ValueId v) const {
    if (is_output_(v)) return false;
    std::vector<NodeId> users = users_(v);
    return std::all_of(users.begin(), users.end(),
                       [&](NodeId id) { return claimed_.contains(id); });
  }

  // The softmax's result after its rounding for the product: to a short float and back, or to tf32.
  // `v` if it is not rounded.
  ValueId rounded(ValueId v) const {
    const NodeId narrow = only_user(v);
    if (narrow.valid() && rounds_to_tf32(graph_.node(narrow))) return graph_.node(narrow).output;
    if (!narrow.valid() || !get_if<op::Cast>(&graph_.node(narrow))) return v;
    const NodeId wide = only_user(graph_.node(narrow).output);
    return wide.valid() && widens_short_float(graph_, graph_.node(wide)) ? graph_.node(wide).output
                                                                         : v;
  }

  // Claims the rounding of an operand if only this attention reads it: a cast to a short float and
  // the cast back to f32, or a rounding to tf32. Returns the value in front of it.
  ValueId take_rounding(ValueId v) {
    const Node* wide = graph_.def(v);
    if (wide && rounds_to_tf32(*wide) && read_inside_only(v)) {
      claim(graph_.value(v).def);
      return wide->inputs[0];
    }
    if (!wide || !widens_short_float(graph_, *wide) || !read_inside_only(v)) return v;
    claim(graph_.value(v).def);
    const ValueId narrow = wide->inputs[0];
    const Node* rounds = graph_.def(narrow);
    if (!rounds || !get_if<op::Cast>(rounds) || !read_inside_only(narrow)) return narrow;
    claim(graph_.value(narrow).def);
    return rounds->inputs[0];
  }

  // Claims the element-wise chain in front of the softmax, back to one matrix product.
  bool take_scores(const Node& softmax) {
    const Shape& shape = type_of(softmax.output).shape;
    std::vector<ValueId> open = {softmax.inputs[0]};
    int products = 0;
    while (!open.empty()) {
      ValueId v = open.back();
      open.pop_back();
      const Node* maker = graph_.def(v);
      if (!maker || !equal(type_of(v).shape, shape) || !read_inside_only(v)) continue;
      NodeId id = graph_.value(v).def;
      if (get_if<op::MatMul>(maker)) {
        if (match_.scores == id) continue;
        match_.scores = id;
        ++products;
        claim(id);
      } else if (is_elementwise(*maker)) {
        claim(id);
        open.insert(open.end(), maker->inputs.begin(), maker->inputs.end());
      }
    }
    return products == 1 && claimed_.size() <= 16;
  }

  void take_movement(ValueId v) {
    for (const Node* maker = graph_.def(v); maker && !maker->inputs.empty();
         maker = graph_.def(v)) {
      bool moves = get_if<op::Transpose>(maker) || get_if<op::Reshape>(maker) ||
                   get_if<op::Slice>(maker);
      if (!moves || !read_inside_only(v) || graph_.is_constant(maker->inputs[0])) return;
      claim(graph_.value(v).def);
      v = maker->inputs[0];
    }
  }

  // Claims a transpose that brings the heads next to the columns, and the reshape that merges them.
  void take_merge() {
    match_.last = match_.product;
    ValueId y = graph_.node(match_.product).output;
    NodeId next = only_user(y);
    const auto* transpose = next.valid() ? get_if<op::Transpose>(&graph_.node(next)) : nullptr;
    if (!transpose || transpose->perm.back() != static_cast<int64_t>(transpose->perm.size()) - 1)
      return;
    match_.last = next;
    claim(next);
    next = only_user(graph_.node(next).output);
    if (!next.valid() || !get_if<op::Reshape>(&graph_.node(next))) return;
    match_.last = next;
    claim(next);
  }

  const Graph& graph_;
  const std::function<std::vector<NodeId>(ValueId)>& users_;
  const std::function<bool(ValueId)>& is_output_;
  Attention match_;
  std::set<NodeId> claimed_;
};

}  // namespace

std::optional<Attention> match_attention(const Graph& graph, NodeId softmax,
                                         const std::function<std::vector<NodeId>(ValueId)>& users,
                                         const std::function<bool(ValueId)>& is_output) {
  return Matcher(graph, users, is_output).run(softmax);
}

}  // namespace tw
