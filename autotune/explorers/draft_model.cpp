#include "autotune/explorers/draft_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw {
namespace {
constexpr double kPenalty = 2;  // pseudo-points for which a value makes no difference
constexpr int kSweeps = 12;     // passes over all knobs, each fitted to the rest that others leave
}  // namespace

DraftModel::DraftModel(const Space& space) {
  for (const Sketch& sketch : space.sketches()) {
    SketchSum& sum = sums_.emplace_back();
    size_t count = 0;
    for (const Knob& knob : sketch.knobs) {
      sum.begins.push_back(count);
      count += knob.values.size();
    }
    sum.values.assign(count, 0);
  }
}

void DraftModel::fit(std::span<const Point> points, std::span<const double> scores) {
  double least = 0, most = 0;
  bool any = false;
  for (const double score : scores)
    if (std::isfinite(score)) {
      least = any ? std::min(least, score) : score;
      most = any ? std::max(most, score) : score;
      any = true;
    }
  const double illegal = least - 0.25 * (most - least);
  for (size_t s = 0; s < sums_.size(); ++s) {
    std::vector<const Point*> own;
    std::vector<double> values;
    for (size_t i = 0; i < points.size(); ++i)
      if (points[i].sketch == static_cast<int>(s)) {
        own.push_back(&points[i]);
        values.push_back(std::isfinite(scores[i]) ? scores[i] : illegal);
      }
    fit(sums_[s], own, values);
  }
}

void DraftModel::fit(SketchSum& sum, std::span<const Point* const> points,
                     std::span<const double> scores) {
  std::ranges::fill(sum.values, 0.0);
  sum.mean = points.empty() ? 0
                            : std::accumulate(scores.begin(), scores.end(), 0.0) /
                                  static_cast<double>(points.size());
  std::vector<double> left(scores.begin(), scores.end());
  for (double& l : left) l -= sum.mean;
  std::vector<double> total, count;
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t k = 0; k < sum.begins.size(); ++k) {
      const size_t begin = sum.begins[k],
                   end = k + 1 < sum.begins.size() ? sum.begins[k + 1] : sum.values.size();
      total.assign(end - begin, 0), count.assign(end - begin, kPenalty);
      for (size_t i = 0; i < points.size(); ++i) {
        const auto v = static_cast<size_t>(points[i]->choice[k]);
        left[i] += sum.values[begin + v];
        total[v] += left[i], count[v] += 1;
      }
      for (size_t v = 0; v < total.size(); ++v) sum.values[begin + v] = total[v] / count[v];
      for (size_t i = 0; i < points.size(); ++i)
        left[i] -= sum.values[begin + static_cast<size_t>(points[i]->choice[k])];
    }
}

}  // namespace tw
