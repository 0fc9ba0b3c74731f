#include "ir/graph/macs.h"

#include <algorithm>

#include "ir/simplify.h"

namespace tw {
namespace {

// Of an If or a Loop.
Expr region_macs(const Node& node) {
  if (const auto* choice = std::get_if<op::If>(&node.attrs)) {
    const Expr a = mac_count(*choice->then_branch.graph), b = mac_count(*choice->else_branch.graph);
    const auto first = as_const(a), second = as_const(b);
    return first && second ? Expr(std::max(*first, *second)) : a + b;
  }
  const auto* loop = std::get_if<op::Loop>(&node.attrs);
  if (!loop) return 0;
  const Expr turn = mac_count(*loop->body.graph);
  if (loop->trip.empty()) return substitute(turn, loop->turn, 1);
  return substitute(turn, loop->turn, loop->trip[0]) * loop->trip[0];
}

}  // namespace

Expr mac_count(const Graph& graph, const Node& node) {
  if (!regions_of(node.attrs).empty()) return region_macs(node);
  if (node.inputs.size() < 2 || !node.inputs[0].valid() || !node.inputs[1].valid()) return 0;
  const Shape &out = graph.value(node.output).type.shape,
              &a = graph.value(node.inputs[0]).type.shape,
              &b = graph.value(node.inputs[1]).type.shape;
  const auto tail = [](const Shape& shape) {
    return element_count(Shape(shape.begin() + 1, shape.end()));
  };
  if (std::holds_alternative<op::Conv>(node.attrs)) return element_count(out) * tail(b);
  if (std::holds_alternative<op::ConvTranspose>(node.attrs)) return element_count(a) * tail(b);
  if (const auto* matmul = std::get_if<op::MatMul>(&node.attrs))
    return element_count(out) * a[a.size() - (matmul->trans_a ? 2 : 1)];
  if (std::holds_alternative<op::MatMulNBits>(node.attrs)) return element_count(out) * a.back();
  // r: a matrix a direction
  if (std::holds_alternative<op::Recurrent>(node.attrs)) return a[0] * a[1] * tail(b);
  return 0;
}

Expr mac_count(const Graph& graph) {
  int64_t fixed = 0;
  Expr free = 0;
  for (const NodeId id : graph.order()) {
    const Expr count = simplify_dim(mac_count(graph, graph.node(id)));
    if (const auto number = as_const(count)) fixed += *number;
    else free = simplify_dim(free + count);
  }
  return simplify_dim(free + Expr(fixed));
}

int64_t macs(const Graph& graph, const Node& node) {
  return as_const(simplify_dim(mac_count(graph, node))).value_or(0);
}

}  // namespace tw
