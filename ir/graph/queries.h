// Small, common questions about nodes and constants.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

template <class Op>
const Op* get_if(const Node* node) {
  return node ? std::get_if<Op>(&node->attrs) : nullptr;
}
bool is_binary(const Node* node, BinaryOp function);
bool is_unary(const Node* node, UnaryOp function);
ValueId input_or_none(const Node& node, size_t index);  // invalid: the input is absent
// True: all inputs and outputs are stored row-major.
bool all_plain(const Graph& graph, const Node& node);
int64_t constant_bytes(const Graph& graph, ValueId constant);
// The value of a constant whose elements are all equal (floats and integers below 2^53). Does not
// copy it.
std::optional<double> splat(const Graph& graph, ValueId value);
std::vector<double> to_doubles(const Tensor& tensor);
Tensor from_doubles(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values);
// Computes one operator over tensors by its reference evaluator.
Expected<Tensor> evaluate_op(const OpAttrs& attrs, const std::vector<const Tensor*>& inputs);
TensorType type_of(const Tensor& tensor);

}  // namespace tw
