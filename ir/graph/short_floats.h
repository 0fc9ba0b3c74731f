// Narrow operands of products that are summed in f32: floats of 16 bits, bytes of constant weights,
// and f32 rounded to tf32.
#pragma once
#include "ir/graph/queries.h"

namespace tw {

inline bool is_short_float(DType t) { return t == DType::f16 || t == DType::bf16; }

// True: the node casts a 16-bit float to f32. Products sum f32(a) * f32(b) of such casts.
inline bool widens_short_float(const Graph& graph, const Node& node) {
  const auto* cast = get_if<op::Cast>(&node);
  return cast && cast->to == DType::f32 && is_short_float(graph.value(node.inputs[0]).type.dtype);
}

// True: the node casts constant bytes to f32. As weights they stay bytes, and the kernel widens
// them.
inline bool widens_bytes(const Graph& graph, const Node& node) {
  const auto* cast = get_if<op::Cast>(&node);
  if (!cast || cast->to != DType::f32 || !graph.is_constant(node.inputs[0])) return false;
  const DType from = graph.value(node.inputs[0]).type.dtype;
  return from == DType::i8 || from == DType::u8;
}

// True: the node rounds to tf32. Products sum a * b of such operands in f32.
inline bool rounds_to_tf32(const Node& node) { return is_unary(&node, UnaryOp::tf32); }

}  // namespace tw
