// What a sketch's knobs are worth, each by itself: a number a value, whose sum stands for a score
// that costs a thousand times as much. For choosing what is worth scoring.
#pragma once
#include <span>
#include <vector>

#include "autotune/space.h"

namespace tw {

class DraftModel {
 public:
  explicit DraftModel(const Space& space);

  // Of a sketch's points, least squares with a penalty on the numbers; before the first fit, and of
  // a sketch without points, all are 0. Scores are finite, or -infinity: illegal, which counts as
  // somewhat worse than the worst.
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
    std::vector<size_t> begins;  // by knob, into values
    std::vector<double> values;  // by value, one knob's after the other's
  };
  static void fit(SketchSum& sum, std::span<const Point* const> points,
                  std::span<const double> scores);
  std::vector<SketchSum> sums_;
};

}  // namespace tw
