// The matrices of Winograd's convolution with three taps: y = AT [(G g) * (BT d)] for m outputs of
// one axis. Stride 1 is F(m, 3). Stride 2 is F(m, 2) of the even inputs with the outer taps, plus
// the odd inputs times the middle tap.
#pragma once
#include <functional>
#include <vector>

#include "kernels/common/group_builder.h"

namespace tw {

using Matrix = std::vector<std::vector<double>>;

struct WinogradTransform {
  int tile = 0;    // m
  int points = 0;  // as many as inputs: m + 2 for stride 1, 2 m + 1 for stride 2
  // m x points, points x 3, points x points. Rows of bt begin with 1, so g carries all divisions.
  Matrix at, g, bt;
};
// tile: 2, 4 or 6; stride: 1 or 2. Interpolates at infinity and at as many of 0, 1, -1, 2, -2, 1/2,
// -1/2 as it needs.
WinogradTransform winograd_transform(int tile, int stride = 1);

// The products of every row of the matrix with the values, in f32. Rows or columns that differ only
// in signs share their even and odd halves, which are written alike, so that code generation
// computes them once.
std::vector<Expr> linear_rows(const Matrix& matrix, const std::vector<Expr>& values);
// G g GT at a point of the two axes, for the taps g[i][j]: computed in f64 and rounded once to f32
Expr transformed_taps(const Matrix& g, const Expr& row, const Expr& column,
                      const std::function<Expr(int64_t i, int64_t j)>& tap);
// A buffer's elements at each of `points` points of an axis, in f32, as operands of linear_rows
std::vector<Expr> point_loads(const GroupBuilder& b, BufferId buffer, int64_t points,
                              const std::function<Index(const Expr& point)>& at);
// rows[index], as a chain of selects that folds if the index is constant
Expr select_row(const Expr& index, const std::vector<Expr>& rows);

}  // namespace tw
