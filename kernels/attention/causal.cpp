#include "kernels/attention/causal.h"

#include <algorithm>

#include "ir/graph/queries.h"

namespace tw {
namespace {

constexpr int64_t kMostElements = 1 << 24;  // limit of a mask that is examined
constexpr int kMostNodes = 16;              // limit of the nodes that compute it
// A number this low takes no part in a softmax, unless all numbers are that low.
constexpr double kHidden = -1e30;

bool is_small(const TensorType& type) {
  int64_t elements = 1;
  for (const Expr& extent : type.shape) {
    if (!as_const(extent)) return false;
    elements *= std::max<int64_t>(1, *as_const(extent));
  }
  return elements <= kMostElements;
}

// The value's elements, if it does not depend on any input of the model
std::optional<Tensor> fixed_value(const Graph& graph, ValueId v, int& nodes_left) {
  if (!is_small(graph.value(v).type)) return std::nullopt;
  if (graph.is_constant(v)) return graph.constant_tensor(v);
  const Node* node = graph.def(v);
  if (!node || has_several_outputs(node->attrs) || nodes_left-- == 0) return std::nullopt;
  std::vector<Tensor> made;
  for (const ValueId input : node->inputs) {
    if (!input.valid()) return std::nullopt;
    std::optional<Tensor> one = fixed_value(graph, input, nodes_left);
    if (!one) return std::nullopt;
    made.push_back(std::move(*one));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& one : made) inputs.push_back(&one);
  Expected<Tensor> value = evaluate_op(node->attrs, inputs);
  if (value) return std::move(*value);
  llvm::consumeError(value.takeError());
  return std::nullopt;
}

// The offset of a causal mask. sees: true where an element shows its key. The mask must be equal
// for all heads.
template <class Sees>
std::optional<int64_t> offset_of(const Tensor& mask, int64_t queries, int64_t keys, Sees sees) {
  if (mask.size() != queries * keys) return std::nullopt;
  int64_t offset = -1, seen = 0;
  while (offset + 1 < keys && sees(offset + 1)) ++offset;
  if (offset < 0 || queries - 1 + offset > keys - 1) return std::nullopt;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      if (sees(i * keys + j) != (j <= i + offset)) return std::nullopt;
      seen += j <= i + offset;
    }
  const bool hides_few = seen * 10 > queries * keys * 9;
  return hides_few ? std::nullopt : std::optional(offset);
}

}  // namespace

std::optional<CausalMask> causal_mask(const Graph& graph, const Group& group, const Node& softmax) {
  const Shape& shape = graph.value(softmax.output).type.shape;
  const std::optional<int64_t> queries = as_const(shape[shape.size() - 2]),
                               keys = as_const(shape.back());
  if (!queries || !keys) return std::nullopt;
  const auto inside = [&](ValueId v) {
    return std::ranges::any_of(group.nodes, [&](NodeId id) { return graph.node(id).output == v; });
  };
  const auto fixed = [&](ValueId v) -> std::optional<Tensor> {
    const Shape& own = graph.value(v).type.shape;
    const bool whole = own.size() >= 2 && equal(own.back(), shape.back()) &&
                       equal(own[own.size() - 2], shape[shape.size() - 2]);
    int nodes_left = kMostNodes;
    return whole && !inside(v) ? fixed_value(graph, v, nodes_left) : std::nullopt;
  };
  ValueId at = softmax.inputs[0];
  for (const Node* node = graph.def(at); node && inside(at) && !get_if<op::MatMul>(node);
       node = graph.def(at)) {
    const std::vector<ValueId>& in = node->inputs;
    if (get_if<op::Select>(node)) {
      const bool sees = inside(in[1]);
      const std::optional<double> other = splat(graph, in[sees ? 2 : 1]);
      if (const auto mask = fixed(in[0]); mask && other && *other <= kHidden)
        if (const auto offset = offset_of(*mask, *queries, *keys,
                                          [&](int64_t e) { return (mask->at(e) != 0) == sees; }))
          return CausalMask{in[0], *offset, sees, 0};
    }
    if (is_binary(node, BinaryOp::add)) {
      const ValueId added = inside(in[0]) ? in[1] : in[0];
      if (const auto mask = fixed(added)) {
        const double hidden = mask->at(*keys - 1);
        bool two = hidden <= kHidden;
        for (int64_t e = 0; two && e < mask->size(); ++e)
          two = mask->at(e) == 0 || mask->at(e) == hidden;
        if (const auto offset = offset_of(*mask, *queries, *keys,
                                          [&](int64_t e) { return mask->at(e) == 0; });
            two && offset)
          return CausalMask{added, *offset, true, hidden};
      }
    }
    const auto next = std::ranges::find_if(in, [&](ValueId v) { return v.valid() && inside(v); });
    if (next == in.end()) break;
    at = *next;
  }
  return std::nullopt;
}

}  // namespace tw
