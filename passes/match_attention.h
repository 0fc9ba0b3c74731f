// Matching of attention: MatMul(Q, K) -> any element-wise chain (scale, mask) -> Softmax ->
// MatMul(., V). The match includes the reshapes, transposes and slices that bring Q, K and V there
// or merge the heads behind, and the casts that round an operand of a product.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

struct Attention {
  NodeId scores, softmax, product;  // MatMul(Q, K), Softmax, MatMul(softmax, V)
  // The node that makes the group's output: the product, a transpose behind it, or a reshape behind
  // that
  NodeId last;
  std::vector<NodeId> nodes;  // all nodes of the group, in no order
};

// users(v) has the nodes that read v, each once; is_output(v) says if the graph's caller reads v.
// Rows, keys and batches may be symbolic. nullopt if there is no attention, or one that the kernel
// does not serve: a single query, an unknown number of columns.
std::optional<Attention> match_attention(const Graph& graph, NodeId softmax,
                                         const std::function<std::vector<NodeId>(ValueId)>& users,
                                         const std::function<bool(ValueId)>& is_output);

}  // namespace tw
