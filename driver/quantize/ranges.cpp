#include "driver/quantize/ranges.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw {
namespace {

constexpr size_t kSteps = 256;  // of 8 bits

// Of what a distribution of bins loses when runs of bins share one step. Bins outside of
// [first, last) are counted at its ends.
double divergence(std::span<const uint64_t> counts, size_t first, size_t last) {
  std::vector<double> p(counts.begin() + static_cast<ptrdiff_t>(first),
                        counts.begin() + static_cast<ptrdiff_t>(last));
  std::vector<double> q(p.size());
  for (size_t step = 0; step < kSteps; ++step) {
    const size_t begin = step * p.size() / kSteps, end = (step + 1) * p.size() / kSteps;
    double sum = 0, filled = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += p[i];
      filled += p[i] > 0;
    }
    for (size_t i = begin; i < end; ++i) q[i] = p[i] > 0 ? sum / filled : 0;
  }
  const double inside = std::accumulate(p.begin(), p.end(), 0.0);
  for (size_t i = 0; i < first; ++i) p.front() += static_cast<double>(counts[i]);
  for (size_t i = last; i < counts.size(); ++i) p.back() += static_cast<double>(counts[i]);
  const double all = std::accumulate(p.begin(), p.end(), 0.0);
  if (inside == 0) return HUGE_VAL;
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    // What is clipped into an empty end has no counterpart: a small share stands for it
    const double share = q[i] > 0 ? q[i] / inside : 1e-9;
    sum += p[i] / all * std::log(p[i] / all / share);
  }
  return sum;
}

}  // namespace

std::optional<RangeMethod> range_method_from_name(std::string_view name) {
  if (name == "minmax") return RangeMethod::min_max;
  if (name == "percentile") return RangeMethod::percentile;
  if (name == "entropy") return RangeMethod::entropy;
  return std::nullopt;
}

void Histogram::add(std::span<const float> values) {
  const double width = range.most - range.least;
  const auto bins = static_cast<double>(counts.size());
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    const double at = width > 0 ? (double{v} - range.least) / width * bins : 0;
    ++counts[static_cast<size_t>(std::clamp(at, 0.0, bins - 1))];
  }
}

double Histogram::edge(size_t bin) const {
  return range.least +
         (range.most - range.least) * static_cast<double>(bin) / static_cast<double>(counts.size());
}

ValueRange percentile_range(const Histogram& histogram, double percent) {
  const std::vector<uint64_t>& counts = histogram.counts;
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  const double spare = static_cast<double>(all) * (100 - percent) / 200;
  size_t first = 0, last = counts.size();
  for (double left = 0; first + 1 < last; ++first)
    if ((left += static_cast<double>(counts[first])) > spare) break;
  for (double left = 0; last > first + 1; --last)
    if ((left += static_cast<double>(counts[last - 1])) > spare) break;
  return {histogram.edge(first), histogram.edge(last)};
}

ValueRange entropy_range(const Histogram& histogram) {
  const size_t bins = histogram.counts.size();
  // Where 0 is: it stays inside, both sides are clipped by one share
  const double width = histogram.range.most - histogram.range.least;
  if (width <= 0) return histogram.range;
  const double zero = std::clamp(-histogram.range.least / width, 0.0, 1.0) *
                      static_cast<double>(bins);
  ValueRange best = histogram.range;
  double least = HUGE_VAL;
  for (size_t kept = bins; kept >= kSteps; kept -= bins / 128) {
    const double share = static_cast<double>(kept) / static_cast<double>(bins);
    const auto first = static_cast<size_t>(std::llround(zero * (1 - share)));
    const size_t last = std::min(bins, first + kept);
    const double lost = divergence(histogram.counts, first, last);
    if (lost >= least) continue;
    least = lost;
    best = {histogram.edge(first), histogram.edge(last)};
  }
  return best;
}

}  // namespace tw
