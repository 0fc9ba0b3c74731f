// Ranges of the sums of products of quantized values.
#pragma once
#include "passes/quantization/quantization.h"

namespace tw {

// True if sums of (x - x_zero) * (w - w_zero) with an i32 bias (or none), as the Conv,
// ConvTranspose or MatMul node makes them, fit 32 bits whatever x holds. Constant weights count as
// they are, others as any number of their type. If only the run knows the number of products, it
// counts as one that fits (most_products), with a bias below 2^30.
bool sums_fit(const Graph& graph, const Node& node, const Dequantized& x, const Dequantized& w,
              ValueId bias);

// The value of op::MatMul::most_products; 0 if the number of products is known.
int64_t most_products(const Graph& graph, const op::MatMul& matmul, const Dequantized& x,
                      const Dequantized& w);

}  // namespace tw
