// Regression by a Gaussian process: values of some items are known, and how alike items are.
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1.
#pragma once
#include <span>
#include <vector>

namespace tw {

class GaussianProcess {
 public:
  // covariance: of the known items, row by row, symmetric; noise: the variance of a value around
  // what its item is worth, above 0. Values are around 0.
  GaussianProcess(std::vector<double> covariance, std::span<const double> values, double noise);

  // The logarithm of how likely the values are, but for a constant.
  double log_likelihood() const { return log_likelihood_; }
  // covariances: of one item with the known ones, in order.
  double mean(std::span<const double> covariances) const;
  // What the known items explain of the item: the covariance of two items, given the values, is
  // their covariance less the product of these vectors.
  std::vector<double> explained(std::span<const double> covariances) const;

 private:
  size_t count_;
  std::vector<double> lower_;    // triangle of Cholesky's factor, row by row
  std::vector<double> weights_;  // of covariances, in the mean
  double log_likelihood_ = 0;
};

}  // namespace tw
