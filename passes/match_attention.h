// Finds attention: MatMul(Q, K) -> any element-wise chain (scale, mask) -> Softmax -> MatMul(., V),
// with the reshapes, transposes and slices that only bring Q, K and V there or merge the heads
// behind, and the casts that round an operand of a product.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

struct Attention {
  NodeId scores, softmax, product;  // MatMul(Q, K), Softmax, MatMul(softmax, V)
  // Makes the group's output: the product, a transpose behind it, or a reshape behind that
  NodeId last;
  std::vector<NodeId> nodes;  // all of the group, unordered
};

// users(v): the nodes that read v, each once; is_output(v): the graph's caller reads v. Rows, keys
// and batches may be symbolic. nullopt: no attention, or one that the kernel does not serve: a
// single query, columns of an unknown number.
std::optional<Attention> match_attention(const Graph& graph, NodeId softmax,
                                         const std::function<std::vector<NodeId>(ValueId)>& users,
                                         const std::function<bool(ValueId)>& is_output);

}  // namespace tw
