// Small random graphs of core operators, with chains, diamonds and patterns that passes look for.
// Values are of order one.
#pragma once
#include <random>

#include "ir/graph/graph.h"

namespace tw::test {

Tensor random_tensor(std::mt19937& random, DType dtype, std::vector<int64_t> shape);
Graph random_graph(unsigned seed);

// A tensor for every input of the graph; symbols get the extent 3.
std::vector<Tensor> random_inputs(const Graph& graph, unsigned seed);
// The largest difference of two tensors relative to the range of the first (at least 1); infinity
// when types differ.
double relative_difference(const Tensor& a, const Tensor& b);

}  // namespace tw::test
