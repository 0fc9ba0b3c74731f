// y = scale * x + shift with constants, in double, uniform or along one axis: what batch norms and
// additions, multiplications, divisions by constants are, and what chains of them are again.
#pragma once
#include "passes/rewriter.h"

namespace tw {

struct Affine {
  int axis = -1;                     // of x; -1: one number for all
  std::vector<double> scale, shift;  // one element, or one for each index of the axis
  double scale_at(size_t i) const { return scale[axis < 0 ? 0 : i]; }
  double shift_at(size_t i) const { return shift[axis < 0 ? 0 : i]; }
  bool scales() const;  // some scale is not 1
  bool shifts() const;  // some shift is not 0
};

// The node as an affine function of its input `x`; nullopt for other nodes, non-float types and
// constants that broadcast x.
struct AffineNode {
  ValueId x;
  Affine function;
};
std::optional<AffineNode> affine_node(const Graph& graph, const Node& node);
// The largest factor and weight that become one with others: between two factors up to it, values
// overflow only where they are within it of the type's largest number, and underflow only where
// they are within it of the smallest.
double moderate_limit(DType dtype);
// The smallest positive number that the type holds to its full precision.
double smallest_normal(DType dtype);
// second(first(x)) in floats of this type. nullopt where that would not be what the two compute one
// after the other: their numbers differ along different axes, leave the type's moderate range, or
// the shifts cancel, by which a model rounds: (x + 12582912) - 12582912.
std::optional<Affine> compose(const Affine& first, const Affine& second, DType dtype);
// What `numbers` of the affine are as a constant that broadcasts against a tensor of this rank: [n,
// 1, 1] or a scalar.
Tensor broadcastable(const Affine& affine, const std::vector<double>& numbers, DType dtype,
                     size_t rank);

}  // namespace tw
