#include "autotune/models/gaussian.h"

#include <cmath>
#include <numeric>

namespace tw {

GaussianProcess::GaussianProcess(std::vector<double> covariance, std::span<const double> values,
                                 double noise)
    : count_(values.size()), lower_(std::move(covariance)) {
  for (size_t i = 0; i < count_; ++i) {
    double* row = &lower_[i * count_];
    for (size_t j = 0; j <= i; ++j) {
      const double* other = &lower_[j * count_];
      const double left = row[j] - std::inner_product(row, row + j, other, 0.0);
      // Items may be equal except for rounding; then only the noise distinguishes them.
      row[j] = i == j ? std::sqrt(std::max(left, 0.0) + noise) : left / other[j];
    }
  }
  weights_ = explained(values);
  for (size_t i = 0; i < count_; ++i)
    log_likelihood_ -= weights_[i] * weights_[i] / 2 + std::log(lower_[i * count_ + i]);
  for (size_t i = count_; i-- > 0;) {
    for (size_t j = i + 1; j < count_; ++j) weights_[i] -= lower_[j * count_ + i] * weights_[j];
    weights_[i] /= lower_[i * count_ + i];
  }
}

double GaussianProcess::mean(std::span<const double> covariances) const {
  return std::inner_product(weights_.begin(), weights_.end(), covariances.begin(), 0.0);
}

std::vector<double> GaussianProcess::explained(std::span<const double> covariances) const {
  std::vector<double> out(covariances.begin(), covariances.end());
  for (size_t i = 0; i < count_; ++i) {
    const double* row = &lower_[i * count_];
    out[i] = (out[i] - std::inner_product(row, row + i, out.begin(), 0.0)) / row[i];
  }
  return out;
}

}  // namespace tw
