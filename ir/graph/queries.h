// Small questions about nodes and constants that many ask.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

// The node's operator if it is an Op, else null.
template <class Op>
const Op* get_if(const Node* node) {
  return node ? std::get_if<Op>(&node->attrs) : nullptr;
}
bool is_binary(const Node* node, BinaryOp function);
bool is_unary(const Node* node, UnaryOp function);
ValueId input_or_none(const Node& node, size_t index);  // invalid when absent
// Inputs and outputs are stored row-major
bool all_plain(const Graph& graph, const Node& node);
int64_t constant_bytes(const Graph& graph, ValueId constant);
// The value of a constant whose elements are all equal (floats and integers below 2^53), looked at
// without a copy.
std::optional<double> splat(const Graph& graph, ValueId value);
// A constant's elements as doubles; an axis -1 tensor has one.
std::vector<double> to_doubles(const Tensor& tensor);
Tensor from_doubles(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values);
// One operator over tensors by its reference evaluator.
Expected<Tensor> evaluate_op(const OpAttrs& attrs, const std::vector<const Tensor*>& inputs);
TensorType type_of(const Tensor& tensor);

}  // namespace tw
