// Medians of samples, and how sure they are.
#pragma once
#include <vector>

namespace tw {

struct MeasureResult;

double median_of(std::vector<double> samples);   // of at least one
double seconds_of(const MeasureResult& result);  // the median; infinite unless it is ok
// The fewest samples that have an interval of their median
inline constexpr int kLeastSamples = 6;
struct MedianInterval {
  double low = 0, high = 0;
};
// Holds the median of the distribution with at least 95 % (from order statistics: no assumption
// about its form). Fewer than six samples: 0 and infinity. More than a hundred: by the normal
// approximation.
MedianInterval median_interval(std::vector<double> samples);

}  // namespace tw
