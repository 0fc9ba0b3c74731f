// The nodes that Strassen's algorithm can compute on a target, and the tile that it takes there
#include <algorithm>

#include "kernels/strassen/strassen.h"

namespace tw {

static bool all_constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(),
                     [](const Expr& e) { return as_const(e).has_value(); });
}

int64_t strassen_rows(int64_t half_rows, int64_t vectors, const Target& target) {
  const int64_t most = std::max<int64_t>(1, (target.vector_registers - 1 - vectors) / vectors);
  const int64_t tiles = (half_rows + most - 1) / most;
  return (half_rows + tiles - 1) / tiles;
}

// The fewest products with enough of them in flight. Among equals, the most columns at once.
int64_t strassen_vectors(int64_t half_rows, int64_t blocks, const Target& target) {
  constexpr int64_t kFewestProducts = 8;
  int64_t best = 1;
  double best_cost = 0;
  for (int64_t vectors = 1; vectors <= 4; ++vectors) {
    if (blocks % vectors != 0 || 2 * vectors + 2 > target.vector_registers) continue;
    const int64_t rows = strassen_rows(half_rows, vectors, target),
                  tiles = (half_rows + rows - 1) / rows;
    const double products = static_cast<double>(std::max(rows * vectors, kFewestProducts)),
                 loads = static_cast<double>(rows + vectors) / 1.5;
    const double cost = static_cast<double>(tiles) * std::max(products, loads) /
                        static_cast<double>(vectors);
    if (best_cost > 0 && cost > best_cost) continue;
    best = vectors;
    best_cost = cost;
  }
  return best;
}

bool strassen_applies(const Graph& graph, const Node& node, const Target& target) {
  if (node.inputs.size() < 2 || !graph.is_constant(node.inputs[1]) ||
      graph.is_constant(node.inputs[0]))
    return false;
  const TensorType &x = graph.value(node.inputs[0]).type, &w = graph.value(node.inputs[1]).type,
                   &y = graph.value(node.output).type;
  const int64_t pair = 2 * target.lanes(4);
  if (x.dtype != DType::f32 || w.dtype != DType::f32 || !all_constant(x.shape) ||
      !all_constant(w.shape) || !all_constant(y.shape))
    return false;
  auto whole = [&](const Expr& e) { return *as_const(e) % pair == 0; };
  if (const auto* a = std::get_if<op::MatMul>(&node.attrs)) {
    if (a->trans_a || x.shape.size() < 2 || w.shape.size() < 2 || !x.layout.plain() ||
        !y.layout.plain() || x.shape.size() < w.shape.size())
      return false;
    for (size_t i = 0; i + 2 < w.shape.size(); ++i)
      if (!is_const(w.shape[i], 1)) return false;
    return whole(x.shape.back()) && whole(y.shape.back()) &&
           !is_const(element_count(Shape(y.shape.begin(), y.shape.end() - 1)), 1);
  }
  const auto* conv = std::get_if<op::Conv>(&node.attrs);
  if (!conv || conv->group != 1 || y.layout.plain() || !(x.layout == y.layout) ||
      !is_const(x.shape[0], 1))
    return false;
  for (size_t i = 2; i < w.shape.size(); ++i)
    if (!is_const(w.shape[i], 1) || conv->strides[i - 2] != 1) return false;
  if (std::any_of(conv->pads.begin(), conv->pads.end(), [](int64_t p) { return p != 0; }))
    return false;
  return y.layout.block == target.lanes(4) && whole(x.shape[1]) && whole(y.shape[1]) &&
         !is_const(element_count(Shape(y.shape.begin() + 2, y.shape.end())), 1);
}

}  // namespace tw
