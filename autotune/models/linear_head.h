// Linear regression within groups. It fits the heads of predictors.
#pragma once
#include <cstddef>
#include <vector>

namespace tw {

// The rows of one task. Common offsets of all rows are ignored.
struct HeadGroup {
  std::vector<std::vector<double>> rows;  // rows have equal lengths
  std::vector<double> values;
};

// The weights w that minimize the sum over groups and rows of (value - w * row)^2 + penalty *
// |w|^2, where rows and values are relative to their group's mean. w is drawn to `prior` instead of
// 0, if given. A group weighs as much as it has rows.
std::vector<double> fit_within_groups(const std::vector<HeadGroup>& groups, double penalty,
                                      const std::vector<double>& prior = {});

// The root of the mean square of the remaining errors, within groups
double error_within_groups(const std::vector<HeadGroup>& groups,
                           const std::vector<double>& weights);

}  // namespace tw
