#include "kernels/device/tiles.h"

#include "ir/graph/queries.h"

namespace tw {

// True: one right matrix serves all batches, so their rows can be joined.
static bool joins_batches(const Graph& graph, const Node& node) {
  bool joined = !std::get<op::MatMul>(node.attrs).trans_a;
  const Shape& right = graph.value(node.inputs[1]).type.shape;
  for (size_t i = 0; i + 2 < right.size(); ++i) joined &= is_const(right[i], 1);
  return joined;
}

std::optional<TileProblem> tile_problem_of(const Graph& graph, const Node& node, bool tf32) {
  const auto* conv = get_if<op::Conv>(&node);
  const auto* product = get_if<op::MatMul>(&node);
  if (!conv && !product) return std::nullopt;
  const TensorType &left = graph.value(node.inputs[0]).type,
                   &right = graph.value(node.inputs[1]).type;
  const Shape& y = graph.value(node.output).type.shape;
  if (left.dtype != right.dtype || left.shape.size() < 2 || right.shape.size() < 2)
    return std::nullopt;
  Shape batches, rows(y.begin(), y.end() - 1);
  Expr columns = y.back(),
       depth = product && product->trans_a ? left.shape[left.shape.size() - 2] : left.shape.back();
  if (conv) {
    rows.assign(y.begin() + 2, y.end());
    rows.push_back(y[0]);
    columns = simplify(floor_div(right.shape[0], Expr(conv->group)));
    batches = {Expr(conv->group)};
    depth = element_count(Shape(right.shape.begin() + 1, right.shape.end()));
  } else if (!joins_batches(graph, node)) {
    batches.assign(rows.begin(), rows.end() - 1);
    rows = {rows.back()};
  }
  const auto count = [](const Shape& shape) { return as_const(simplify(element_count(shape))); };
  const auto fixed_columns = as_const(columns), fixed_depth = as_const(simplify(depth));
  if (!fixed_columns || !fixed_depth) return std::nullopt;
  return TileProblem{count(batches),
                     count(rows),
                     *fixed_columns,
                     *fixed_depth,
                     {left.dtype, tf32},
                     count(left.shape).value_or(0) * dtype_bytes(left.dtype),
                     count(right.shape).value_or(0) * dtype_bytes(right.dtype),
                     conv != nullptr};
}

}  // namespace tw
