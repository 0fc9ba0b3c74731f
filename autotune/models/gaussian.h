// Regression by a Gaussian process, from the values of some items and the likeness of all items.
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1.
#pragma once
#include <span>
#include <vector>

namespace tw {

class GaussianProcess {
 public:
  // `covariance` has the known items' covariances, row by row, symmetric. `noise` is the variance
  // of a value around its item's true value, above 0. Values lie around 0.
  GaussianProcess(std::vector<double> covariance, std::span<const double> values, double noise);

  // The logarithm of the values' likelihood, up to a constant
  double log_likelihood() const { return log_likelihood_; }
  // `covariances` are those of an item with the known ones, in order.
  double mean(std::span<const double> covariances) const;
  // The part of an item that the known items explain, as a vector. Given the values, the covariance
  // of two items is their covariance less the product of their vectors.
  std::vector<double> explained(std::span<const double> covariances) const;

 private:
  size_t count_;
  std::vector<double> lower_;    // the triangle of Cholesky's factor, row by row
  std::vector<double> weights_;  // weights of covariances in the mean
  double log_likelihood_ = 0;
};

}  // namespace tw
