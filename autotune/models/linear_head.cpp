#include "autotune/models/linear_head.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Subtracts the group's means from rows and values.
HeadGroup centred(HeadGroup group) {
  const auto count = static_cast<double>(group.rows.size());
  const double mean = std::accumulate(group.values.begin(), group.values.end(), 0.0) / count;
  for (double& value : group.values) value -= mean;
  std::vector<double> means(group.rows.front().size(), 0);
  for (const std::vector<double>& row : group.rows)
    for (size_t i = 0; i < row.size(); ++i) means[i] += row[i] / count;
  for (std::vector<double>& row : group.rows)
    for (size_t i = 0; i < row.size(); ++i) row[i] -= means[i];
  return group;
}

// Solves a * x = b for a symmetric positive matrix. Cholesky's factors replace `a`.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(std::max(a[j][j], 1e-12));
    for (size_t i = j + 1; i < n; ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

}  // namespace

std::vector<double> fit_within_groups(const std::vector<HeadGroup>& groups, double penalty,
                                      const std::vector<double>& prior) {
  size_t columns = 0;
  for (const HeadGroup& group : groups)
    if (!group.rows.empty()) columns = group.rows.front().size();
  if (columns == 0) return {};
  std::vector<std::vector<double>> matrix(columns, std::vector<double>(columns, 0));
  std::vector<double> right(columns, 0);
  for (size_t i = 0; i < columns; ++i) {
    matrix[i][i] = penalty;
    if (i < prior.size()) right[i] = penalty * prior[i];
  }
  for (const HeadGroup& given : groups) {
    if (given.rows.empty()) continue;
    const HeadGroup group = centred(given);
    for (size_t r = 0; r < group.rows.size(); ++r)
      for (size_t i = 0; i < columns; ++i) {
        right[i] += group.rows[r][i] * group.values[r];
        for (size_t j = 0; j <= i; ++j) matrix[i][j] += group.rows[r][i] * group.rows[r][j];
      }
  }
  return solve(std::move(matrix), std::move(right));
}

double error_within_groups(const std::vector<HeadGroup>& groups,
                           const std::vector<double>& weights) {
  double squares = 0, count = 0;
  for (const HeadGroup& given : groups) {
    if (given.rows.empty()) continue;
    const HeadGroup group = centred(given);
    for (size_t r = 0; r < group.rows.size(); ++r) {
      const double left = group.values[r] - dot(weights, group.rows[r]);
      squares += left * left, count += 1;
    }
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

}  // namespace tw
