// Linear regression within groups: what heads of predictors are fitted by.
#pragma once
#include <cstddef>
#include <vector>

namespace tw {

// Rows of one task; what is the same for all of them says nothing.
struct HeadGroup {
  std::vector<std::vector<double>> rows;  // of equal length
  std::vector<double> values;
};

// The weights w that make sum over groups and rows of (value - w * row)^2 + penalty * |w|^2 least,
// where rows and values count from their group's mean. `prior`: what w is drawn to instead of 0;
// empty: 0. Groups of different sizes weigh as many as they have rows.
std::vector<double> fit_within_groups(const std::vector<HeadGroup>& groups, double penalty,
                                      const std::vector<double>& prior = {});

// The root of the mean square of what the weights leave, within groups.
double error_within_groups(const std::vector<HeadGroup>& groups,
                           const std::vector<double>& weights);

}  // namespace tw
