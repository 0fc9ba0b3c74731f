// Queries of passes about quantized values.
#pragma once
#include "passes/rewriter.h"

namespace tw {

// Constant scales and zero points of a Quantize or Dequantize node: one of each, or one for each
// index of the axis.
struct Quantization {
  // Axis of the quantized tensor; -1: one scale and zero point for all
  int64_t axis = -1;
  std::vector<float> scale;   // positive
  std::vector<int64_t> zero;  // as many as scales
  DType type{};               // type of the integers
  float scale_at(size_t i) const { return scale[axis < 0 ? 0 : i]; }
  int64_t zero_at(size_t i) const { return zero[axis < 0 ? 0 : i]; }
  bool operator==(const Quantization&) const = default;
};
// nullopt for another node, or for parameters that are not constant, not f32 or not positive.
std::optional<Quantization> quantization(const Graph& graph, const Node& node);

// A float value that a Dequantize makes of integers.
struct Dequantized {
  ValueId x;
  Quantization by;
};
std::optional<Dequantized> dequantized(const Graph& graph, ValueId value);

// max(bound, x) or min(bound, x) with one constant for all elements of x.
struct Clamp {
  ValueId x;
  BinaryOp function;
  float bound;
};
std::optional<Clamp> constant_clamp(const Graph& graph, ValueId value);

// True if each element of the output is an element of input 0 (Concat: of all inputs): movement,
// and the largest of a window.
bool moves_elements(const Node& node);
// saturate(round_half_even(x / scale) + zero) in f32, as QuantizeLinear computes it.
int64_t quantized_number(float x, float scale, int64_t zero, DType to);

void sink_dequantization(Rewriter& rewriter);  // passes/quantization/sink_dequantization.cpp
// quantize(concat(a, b)) -> concat(quantize(a), quantize(b))
void split_concatenations(Rewriter& rewriter);
// The operators that compute in floats between integers: "3 softmax, 1 layer_norm"; empty: none.
std::string floats_between(const Graph& graph);

}  // namespace tw
