// The nodes that Winograd's algorithm can compute on a target, and the form that it takes there
#include <numeric>

#include "kernels/winograd/winograd.h"

namespace tw {

int64_t channels_together(int64_t channels, int64_t block) { return std::gcd(channels, block); }

IntegerProduct winograd_product(DType type, const Target& target, int64_t together,
                                int64_t out_block) {
  if (type != DType::bf16) return {};
  return integer_product(target, {type, 0}, type, {out_block, together, 1});
}

IntegerProduct winograd_product(const Graph& graph, const Node& node, const Target& target) {
  const TensorType &x = graph.value(node.inputs[0]).type, &y = graph.value(node.output).type;
  if (x.layout.plain() || y.layout.plain() || !as_const(x.shape[1])) return {};
  const int64_t together = channels_together(*as_const(x.shape[1]), x.layout.block);
  return winograd_product(x.dtype, target, together, y.layout.block);
}

// Two vectors fill the registers with tall tiles and keep the products of a block small. With few
// tiles, more vectors are needed.
int64_t winograd_vectors(int64_t blocks, int64_t tiles, const Target& target) {
  constexpr int64_t kFewestProducts = 8;
  for (int64_t vectors : {2, 3, 4})
    if (blocks % vectors == 0 && tiles * vectors >= kFewestProducts &&
        3 * vectors < target.vector_registers)
      return vectors;
  return blocks % 2 == 0 ? 2 : 1;
}

bool winograd_applies(const Graph& graph, const Node& node, const Target& target) {
  const auto* conv = std::get_if<op::Conv>(&node.attrs);
  if (!conv || conv->group != 1) return false;
  const TensorType &x = graph.value(node.inputs[0]).type, &w = graph.value(node.inputs[1]).type,
                   &y = graph.value(node.output).type;
  if (x.shape.size() != 4 || x.dtype != w.dtype || y.dtype != DType::f32) return false;
  // Transformed numbers could exceed the range of f16.
  if (x.dtype != DType::f32 && x.dtype != DType::bf16) return false;
  for (const TensorType* t : {&x, &w, &y})
    for (const Expr& extent : t->shape)
      if (!as_const(extent)) return false;
  for (size_t i = 0; i < 2; ++i)
    if (!is_const(w.shape[i + 2], 3) || conv->strides[i] > 2 ||
        conv->strides[i] != conv->strides[0] || conv->dilations[i] != 1)
      return false;
  if (target.axes.empty() && (x.layout.plain() || y.layout.plain())) return false;
  if (x.dtype == DType::bf16 &&
      !(target.axes.empty() && winograd_product(graph, node, target).defined()))
    return false;
  return graph.is_constant(node.inputs[1]);
}

}  // namespace tw
