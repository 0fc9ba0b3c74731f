// The matrices of Winograd's convolution F(m, 3): y = AT [(G g) * (BT d)] for m outputs of one axis from m + 2 inputs.
#pragma once
#include <vector>

#include "ir/expr.h"

namespace tw {

using Matrix = std::vector<std::vector<double>>;

struct WinogradTransform {
  int tile = 0;      // m
  int points = 0;    // m + 2
  Matrix at, g, bt;  // m x points, points x 3, points x points. Rows of bt lead with 1, so that g carries all divisions
};
// tile: 2, 4 or 6; interpolates at 0, 1, -1, 2, -2, 1/2, -1/2 (the first m + 1) and infinity.
WinogradTransform winograd_transform(int tile);

// The products of every row of the matrix with the values, f32. Rows or columns that differ in signs only share their even
// and odd halves, written alike, so that code generation computes them once.
std::vector<Expr> linear_rows(const Matrix& matrix, const std::vector<Expr>& values);
// rows[index], as a chain of selects that folds once the index is constant.
Expr select_row(const Expr& index, const std::vector<Expr>& rows);

}  // namespace tw
