// Affine functions y = scale * x + shift with constants, in double, uniform or along one axis.
// Batch norms are affine, and so are additions, multiplications and divisions by constants, and
// chains of them.
#pragma once
#include "passes/rewriter.h"

namespace tw {

struct Affine {
  int axis = -1;                     // axis of x; -1: one number for all
  std::vector<double> scale, shift;  // one element, or one for each index of the axis
  double scale_at(size_t i) const { return scale[axis < 0 ? 0 : i]; }
  double shift_at(size_t i) const { return shift[axis < 0 ? 0 : i]; }
  bool scales() const;
  bool shifts() const;
};

// The node as an affine function of its input `x`. nullopt for other nodes, types that are not
// floats, and constants that broadcast x.
struct AffineNode {
  ValueId x;
  Affine function;
};
std::optional<AffineNode> affine_node(const Graph& graph, const Node& node);
// The largest magnitude of factors and weights that may be merged with others. A value between two
// such factors overflows only if the result is within this factor of the type's largest number, and
// underflows only if it is within this factor of the smallest.
double moderate_limit(DType dtype);
// The smallest positive number that the type holds to its full precision.
double smallest_normal(DType dtype);
// second(first(x)) in floats of this type. nullopt if the composed function would differ from the
// two in turn: their numbers lie along different axes or leave the type's moderate range, or the
// shifts cancel. Models round by shifts that cancel: (x + 12582912) - 12582912.
std::optional<Affine> compose(const Affine& first, const Affine& second, DType dtype);
// The affine's `numbers` as a constant that broadcasts against a tensor of this rank: [n, 1, 1] or
// a scalar.
Tensor broadcastable(const Affine& affine, const std::vector<double>& numbers, DType dtype,
                     size_t rank);

}  // namespace tw
