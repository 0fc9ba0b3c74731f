// The worth of a sketch's knobs, each by itself: a number for each value. Their sum stands for a
// score that costs a thousand times as much, and chooses the points that are worth scoring.
#pragma once
#include <span>
#include <vector>

#include "autotune/space.h"

namespace tw {

class DraftModel {
 public:
  explicit DraftModel(const Space& space);

  // Fits each sketch to its points by least squares with a penalty on the numbers. Before the first
  // fit, and for a sketch without points, all numbers are 0. A score of -infinity means illegal,
  // and counts as somewhat worse than the worst finite score.
  void fit(std::span<const Point> points, std::span<const double> scores);
  double score(const Point& point) const {
    const SketchSum& sum = sums_[static_cast<size_t>(point.sketch)];
    double score = sum.mean;
    for (size_t k = 0; k < point.choice.size(); ++k)
      score += sum.values[sum.begins[k] + static_cast<size_t>(point.choice[k])];
    return score;
  }

 private:
  struct SketchSum {
    double mean = 0;
    std::vector<size_t> begins;  // first value of each knob, in `values`
    std::vector<double> values;  // worth of each value, knob after knob
  };
  static void fit(SketchSum& sum, std::span<const Point* const> points,
                  std::span<const double> scores);
  std::vector<SketchSum> sums_;
};

}  // namespace tw
