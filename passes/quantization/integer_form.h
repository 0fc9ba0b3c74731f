// The operators that replace a quantize node: integers, and f32 up to its rounding.
#pragma once
#include "passes/quantization/quantization.h"

namespace tw {

// Adds nodes that are named after one node, and finally replaces that node.
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
  // function(x, other), with `other` as a constant of x's type
  ValueId with(BinaryOp function, ValueId x, double other, const char* suffix);

  struct Range {
    DType to;
    int64_t zero, low, high;
  };
  // Makes the node saturate(clamp(rounded + zero)).
  void finish(ValueId rounded, const Range& range);

 private:
  Rewriter& rewriter_;
  NodeId at_;
};

// Removes clamps in front of the quantize node `id` that its own range repeats, such as a relu if
// the zero point is the smallest integer.
void drop_clamps(Rewriter& rewriter, NodeId id, const Quantization& to);

enum class ZeroPoint : uint8_t { after_rounding, before_rounding };

// Rewrites sums, products and averages of dequantized values that only the quantize node `id`
// reads. If the zero point comes before rounding, averages stay, and the node remains a quantize.
// Returns true if it has rewritten something.
bool fuse_arithmetic(Rewriter& rewriter, NodeId id, const Quantization& to, ZeroPoint zero);

}  // namespace tw
