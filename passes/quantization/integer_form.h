// What is written in place of a quantize node: integers and f32 up to its rounding.
#pragma once
#include "passes/quantization/quantization.h"

namespace tw {

// Adds nodes named after one node, and ends as that node.
class IntegerForm {
 public:
  IntegerForm(Rewriter& rewriter, NodeId at) : rewriter_(rewriter), at_(at) {}

  NodeId at() const { return at_; }
  std::string name() const {
    const Graph& graph = rewriter_.graph();
    return graph.value(graph.node(at_).output).name;
  }
  ValueId add(OpAttrs attrs, std::vector<ValueId> inputs, const char* suffix) {
    return rewriter_.add(std::move(attrs), std::move(inputs), at_, suffix);
  }
  ValueId number(double value, DType t, const char* suffix) {
    return constant(from_doubles(t, {}, {value}), suffix);
  }
  ValueId constant(const Tensor& tensor, const char* suffix) {
    return rewriter_.add_constant(name() + "_" + suffix, tensor);
  }
  ValueId cast(DType t, ValueId x, const char* suffix) { return add(op::Cast{t}, {x}, suffix); }
  // function(x, other), other a number of x's type
  ValueId with(BinaryOp function, ValueId x, double other, const char* suffix);

  struct Range {
    DType to;
    int64_t zero, low, high;
  };
  // The node becomes saturate(clamp(rounded + zero)).
  void finish(ValueId rounded, const Range& range);

 private:
  Rewriter& rewriter_;
  NodeId at_;
};

// Takes out clamps in front of the quantize node `id` that its own range makes again, as a relu
// with the smallest integer as the zero point.
void drop_clamps(Rewriter& rewriter, NodeId id, const Quantization& to);

enum class ZeroPoint : uint8_t { after_rounding, before_rounding };

// Sums, products and averages of dequantized values that the quantize node `id` alone reads; with
// the zero point before rounding no averages, and the node stays one. Whether it is rewritten.
bool fuse_arithmetic(Rewriter& rewriter, NodeId id, const Quantization& to, ZeroPoint zero);

}  // namespace tw
