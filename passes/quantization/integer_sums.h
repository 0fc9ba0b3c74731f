// The numbers that sums of products of quantized values may reach.
#pragma once
#include "passes/quantization/quantization.h"

namespace tw {

// Sums of (x - x_zero) * (w - w_zero) with an i32 bias (or none), as the Conv, ConvTranspose or
// MatMul node makes them, fit 32 bits whatever x holds. Constant weights count as they are, others
// as any number of their type. A number of products that only the run knows counts as one that
// fits (most_products), with a bias below 2^30.
bool sums_fit(const Graph& graph, const Node& node, const Dequantized& x, const Dequantized& w,
              ValueId bias);

// For op::MatMul::most_products: 0 where the number of products is known.
int64_t most_products(const Graph& graph, const op::MatMul& matmul, const Dequantized& x,
                      const Dequantized& w);

}  // namespace tw
