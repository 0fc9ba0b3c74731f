#include "ir/graph/macs.h"

#include <algorithm>

#include "ir/simplify.h"

namespace tw {
namespace {

Expr tail_count(const Shape& shape) { return element_count(Shape(shape.begin() + 1, shape.end())); }

// A new operator needs an overload here, otherwise this does not compile.
struct MacCount {
  const Graph& graph;
  const Node& node;

  Expr operator()(const op::If& choice) const {
    const Expr a = mac_count(*choice.then_branch.graph), b = mac_count(*choice.else_branch.graph);
    const auto first = as_const(a), second = as_const(b);
    return first && second ? Expr(std::max(*first, *second)) : a + b;
  }
  Expr operator()(const op::Loop& loop) const {
    const Expr iteration = mac_count(*loop.body.graph);
    if (loop.trip.empty()) return substitute(iteration, loop.iteration, 1);
    return substitute(iteration, loop.iteration, loop.trip[0]) * loop.trip[0];
  }
  Expr operator()(const op::Conv&) const { return element_count(out()) * tail_count(in(1)); }
  Expr operator()(const op::ConvTranspose&) const {
    return element_count(in(0)) * tail_count(in(1));
  }
  Expr operator()(const op::MatMul& matmul) const {
    const Shape& a = in(0);
    return element_count(out()) * a[a.size() - (matmul.trans_a ? 2 : 1)];
  }
  Expr operator()(const op::MatMulNBits&) const { return element_count(out()) * in(0).back(); }
  // The weights r have one matrix for each direction.
  Expr operator()(const op::Recurrent&) const { return in(0)[0] * in(0)[1] * tail_count(in(1)); }
  template <class Op>
    requires OneOf<Op, op::Unary, op::Binary, op::Select, op::Cast, op::Quantize, op::Dequantize,
                   op::Lookup, op::Pool, op::Reduce, op::ArgReduce, op::Softmax, op::LayerNorm,
                   op::BatchNorm, op::Transpose, op::Reshape, op::Expand, op::Concat, op::Slice,
                   op::Gather, op::Take, op::Within, op::Iota, op::Cumulate, op::Pad, op::Resize,
                   op::ShapeOf, op::DimVector, op::LayoutCast, op::Extern>
  Expr operator()(const Op&) const {
    return 0;
  }

 private:
  const Shape& in(size_t i) const { return graph.value(node.inputs[i]).type.shape; }
  const Shape& out() const { return graph.value(node.output).type.shape; }
};

}  // namespace

Expr mac_count(const Graph& graph, const Node& node) {
  return std::visit(MacCount{graph, node}, node.attrs);
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
