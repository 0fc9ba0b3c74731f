#include "kernels/algorithms/winograd_transform.h"

#include <cmath>

#include "support/diag.h"

namespace tw {
namespace {

using Polynomial = std::vector<double>;  // lowest power first

Polynomial times_root(const Polynomial& p, double root) {  // p * (x - root)
  Polynomial out(p.size() + 1, 0.0);
  for (size_t i = 0; i < p.size(); ++i) {
    out[i + 1] += p[i];
    out[i] -= root * p[i];
  }
  return out;
}

struct Term {
  double coefficient;
  Expr value;
};

// Starts with a value that needs no product, so every other term is one multiply-add.
Expr sum_of(std::vector<Term> terms) {
  std::erase_if(terms, [](const Term& t) { return t.coefficient == 0; });
  if (terms.empty()) return imm(0, DType::f32);
  size_t first = 0;
  for (size_t i = terms.size(); i-- > 0;)
    if (terms[i].coefficient == 1) first = i;
  Expr sum = terms[first].coefficient == 1
                 ? terms[first].value
                 : terms[first].value * imm(terms[first].coefficient, DType::f32);
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i == first) continue;
    double c = terms[i].coefficient;
    if (c == 1) sum = sum + terms[i].value;
    else if (c == -1) sum = sum - terms[i].value;
    else sum = sum + terms[i].value * imm(c, DType::f32);
  }
  return sum;
}

// The products of g's rows with three values, in f64
std::vector<Expr> f64_rows(const Matrix& g, const std::vector<Expr>& values) {
  std::vector<Expr> rows;
  for (const auto& row : g) {
    Expr sum;
    for (size_t i = 0; i < row.size(); ++i)
      if (Expr term = values[i] * imm(row[i], DType::f64); row[i] != 0)
        sum = sum.defined() ? sum + term : term;
    rows.push_back(sum);
  }
  return rows;
}

bool alike(double a, double b) { return std::fabs(a) == std::fabs(b); }

// Replaces two columns that agree up to signs in every row by their sum and difference.
void pair_columns(Matrix& matrix, std::vector<Expr>& values) {
  std::vector<bool> paired(values.size());
  for (size_t j = 0; j < values.size(); ++j)
    for (size_t k = j + 1; k < values.size() && !paired[j]; ++k) {
      bool same = !paired[k];
      for (const auto& row : matrix) same &= alike(row[j], row[k]);
      if (!same) continue;
      paired[j] = paired[k] = true;
      Expr sum = values[j] + values[k], difference = values[j] - values[k];
      values[j] = sum;
      values[k] = difference;
      for (auto& row : matrix) {
        bool equal = row[j] == row[k];
        row[k] = equal ? 0 : row[j];
        if (!equal) row[j] = 0;
      }
    }
}

// The transform F(tile, taps)
WinogradTransform toom_cook(int tile, int taps) {
  const double kPoints[] = {0, 1, -1, 2, -2, 0.5, -0.5};
  WinogradTransform t;
  t.tile = tile;
  t.points = tile + taps - 1;
  const size_t n = static_cast<size_t>(t.points), m = static_cast<size_t>(tile),
               k = static_cast<size_t>(taps);
  t.at.assign(m, std::vector<double>(n, 0.0));
  t.g.assign(n, std::vector<double>(k, 0.0));
  t.bt.assign(n, std::vector<double>(n, 0.0));
  for (size_t i = 0; i + 1 < n; ++i) {
    double product = 1;
    Polynomial others = {1};
    for (size_t j = 0; j + 1 < n; ++j) {
      if (j == i) continue;
      product *= kPoints[i] - kPoints[j];
      others = times_root(others, kPoints[j]);
    }
    for (size_t r = 0; r < m; ++r) t.at[r][i] = std::pow(kPoints[i], static_cast<double>(r));
    for (size_t r = 0; r < k; ++r)
      t.g[i][r] = std::pow(kPoints[i], static_cast<double>(r)) / product;
    for (size_t j = 0; j < others.size(); ++j) t.bt[i][j] = others[j];
  }
  Polynomial all = {1};
  for (size_t j = 0; j + 1 < n; ++j) all = times_root(all, kPoints[j]);
  t.at[m - 1][n - 1] = t.g[n - 1][k - 1] = 1;
  t.bt[n - 1] = all;
  return t;
}

}  // namespace

WinogradTransform winograd_transform(int tile, int stride) {
  TW_CHECK((tile == 2 || tile == 4 || tile == 6) && (stride == 1 || stride == 2),
           "no Winograd transform of {0} outputs, stride {1}", tile, stride);
  if (stride == 1) return toom_cook(tile, 3);
  const WinogradTransform even = toom_cook(tile, 2);
  const size_t m = static_cast<size_t>(tile), n = static_cast<size_t>(even.points);
  WinogradTransform t;
  t.tile = tile;
  t.points = even.points + tile;
  t.at.assign(m, std::vector<double>(n + m, 0.0));
  t.g.assign(n + m, std::vector<double>(3, 0.0));
  t.bt.assign(n + m, std::vector<double>(n + m, 0.0));
  for (size_t i = 0; i < n; ++i) {
    t.g[i] = {even.g[i][0], 0, even.g[i][1]};
    for (size_t r = 0; r < m; ++r) t.at[r][i] = even.at[r][i];
    for (size_t j = 0; j < n; ++j) t.bt[i][2 * j] = even.bt[i][j];
  }
  for (size_t r = 0; r < m; ++r) t.at[r][n + r] = t.g[n + r][1] = t.bt[n + r][2 * r + 1] = 1;
  return t;
}

std::vector<Expr> linear_rows(const Matrix& matrix_in, const std::vector<Expr>& values_in) {
  Matrix matrix = matrix_in;
  std::vector<Expr> values = values_in;
  pair_columns(matrix, values);
  std::vector<Expr> rows(matrix.size());
  auto part = [&](size_t row, auto&& wanted) {
    std::vector<Term> terms;
    for (size_t j = 0; j < values.size(); ++j)
      if (wanted(j)) terms.push_back({matrix[row][j], values[j]});
    return terms;
  };
  for (size_t r = 0; r < matrix.size(); ++r) {
    if (rows[r].defined()) continue;
    for (size_t q = r + 1; q < matrix.size(); ++q) {
      bool same = !rows[q].defined(), any_odd = false;
      for (size_t j = 0; j < values.size(); ++j) {
        same &= alike(matrix[r][j], matrix[q][j]);
        any_odd |= matrix[r][j] != matrix[q][j];
      }
      if (!same || !any_odd) continue;
      std::vector<Term> odd = part(r, [&](size_t j) { return matrix[r][j] != matrix[q][j]; });
      double scale = 0;
      // The coefficient of the highest term
      for (const Term& t : odd)
        if (t.coefficient != 0) scale = t.coefficient;
      for (Term& t : odd) t.coefficient /= scale;
      Expr even = sum_of(part(r, [&](size_t j) { return matrix[r][j] == matrix[q][j]; })),
           half = sum_of(odd);
      if (std::fabs(scale) == 1) {
        rows[r] = scale > 0 ? even + half : even - half;
        rows[q] = scale > 0 ? even - half : even + half;
      } else {
        rows[r] = even + half * imm(scale, DType::f32);
        rows[q] = even + half * imm(-scale, DType::f32);
      }
      break;
    }
    if (!rows[r].defined()) rows[r] = sum_of(part(r, [](size_t) { return true; }));
  }
  return rows;
}

Expr transformed_taps(const Matrix& g, const Expr& row, const Expr& column,
                      const std::function<Expr(int64_t i, int64_t j)>& tap) {
  std::vector<Expr> columns;
  for (int64_t j = 0; j < 3; ++j) {
    std::vector<Expr> taps;
    for (int64_t i = 0; i < 3; ++i) taps.push_back(cast(DType::f64, tap(i, j)));
    columns.push_back(select_row(row, f64_rows(g, taps)));
  }
  return cast(DType::f32, select_row(column, f64_rows(g, columns)));
}

std::vector<Expr> point_loads(const GroupBuilder& b, BufferId buffer, int64_t points,
                              const std::function<Index(const Expr& point)>& at) {
  std::vector<Expr> values;
  for (int64_t i = 0; i < points; ++i) {
    Index index = at(Expr(i));
    for (Expr& e : index) e = b.simplified(e);
    const Expr value = load(buffer, b.dtype_of(buffer), index);
    values.push_back(value.type() == DType::f32 ? value : cast(DType::f32, value));
  }
  return values;
}

Expr select_row(const Expr& index, const std::vector<Expr>& rows) {
  Expr chain = rows.back();
  for (size_t i = rows.size() - 1; i-- > 0;)
    chain = select(eq(index, Expr(static_cast<int64_t>(i))), rows[i], chain);
  return chain;
}

}  // namespace tw
