#include "autotune/median.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/measure.h"

namespace tw {

double median_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

double seconds_of(const MeasureResult& result) {
  return result.status == Status::ok && !result.seconds.empty()
             ? median_of(result.seconds)
             : std::numeric_limits<double>::infinity();
}

MedianInterval median_interval(std::vector<double> samples) {
  const size_t n = samples.size();
  if (n < kLeastSamples) return {0, std::numeric_limits<double>::infinity()};
  std::sort(samples.begin(), samples.end());
  // The interval goes from the k-th smallest to the k-th largest sample. k is the largest number
  // for which fewer than k of n fair coins show heads in at most 2.5 % of all cases.
  size_t k = 0;
  if (n > 100) {
    k = static_cast<size_t>((static_cast<double>(n) - 1.96 * std::sqrt(static_cast<double>(n))) /
                            2);
  } else {
    double term = std::exp2(-static_cast<double>(n)), sum = term;
    while (sum <= 0.025) {
      ++k;
      term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
      sum += term;
    }
  }
  return {samples[k - 1], samples[n - k]};
}

PairedGain paired_gain(const std::vector<double>& by_default, const std::vector<double>& tuned) {
  std::vector<double> ratios;
  for (size_t i = 0; i < tuned.size(); ++i) ratios.push_back(by_default[i] / tuned[i]);
  return {median_of(ratios), median_interval(ratios)};
}

}  // namespace tw
