#include "driver/quantize/ranges.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw {
namespace {

constexpr size_t kByteSteps = 256;  // steps of 8 bits

double sum_of(std::span<const uint64_t> counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
}

// The Kullback-Leibler divergence of a distribution of bins if runs of bins share one step. Bins
// outside of [first, last) are counted at its ends.
double divergence(const Histogram& histogram, size_t first, size_t last) {
  const std::span<const uint64_t> counts = histogram.counts;
  std::vector<double> p(counts.begin() + static_cast<ptrdiff_t>(first),
                        counts.begin() + static_cast<ptrdiff_t>(last));
  std::vector<double> q(p.size());
  double spare = 0;  // filled bins that share a step with another one
  for (size_t step = 0; step < kByteSteps; ++step) {
    const size_t begin = step * p.size() / kByteSteps, end = (step + 1) * p.size() / kByteSteps;
    double sum = 0, filled = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += p[i];
      filled += p[i] > 0;
    }
    for (size_t i = begin; i < end; ++i) q[i] = p[i] > 0 ? sum / filled : 0;
    spare += std::max(0.0, filled - 1);
  }
  const double inside = std::accumulate(p.begin(), p.end(), 0.0);
  p.front() += sum_of(counts.first(first));
  p.back() += sum_of(counts.subspan(last));
  const double all = sum_of(counts);
  if (inside == 0) return HUGE_VAL;
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    // Counts that are clipped into an empty end have no counterpart: a small share stands for it.
    const double share = q[i] > 0 ? q[i] / inside : 1e-9;
    sum += p[i] / all * std::log(p[i] / all / share);
  }
  // Counts of few values scatter about a smooth distribution, and each spare bin adds 1 / (2 all)
  // to the mean divergence from it. That is no loss of the steps (Miller 1955).
  return sum - spare / (2 * all);
}

// The square error of rounding and clipping, with values spread evenly within each bin
double square_error(const Histogram& histogram, size_t first, size_t last) {
  const double low = histogram.edge(first), high = histogram.edge(last);
  const double step = (high - low) / (kByteSteps - 1);
  double sum = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double middle = (histogram.edge(i) + histogram.edge(i + 1)) / 2;
    const double off = middle - std::clamp(middle, low, high);
    sum += static_cast<double>(histogram.counts[i]) * (off != 0 ? off * off : step * step / 12);
  }
  return sum;
}

// The range with the least loss. It contains 0, and both sides are clipped by one share.
ValueRange least_loss(const Histogram& histogram,
                      double (*loss)(const Histogram&, size_t first, size_t last)) {
  const size_t bins = histogram.counts.size();
  const double width = histogram.range.most - histogram.range.least;
  if (width <= 0) return histogram.range;
  const double zero = std::clamp(-histogram.range.least / width, 0.0, 1.0) *
                      static_cast<double>(bins);
  ValueRange best = histogram.range;
  double least = HUGE_VAL;
  // Every range has an integer for 0, so the zeros that a Relu makes have no part in the choice.
  Histogram others = histogram;
  others.counts[histogram.bin_of(0)] -= histogram.zeros;
  for (size_t kept = bins; kept >= kByteSteps; kept -= bins / 128) {
    const double share = static_cast<double>(kept) / static_cast<double>(bins);
    const auto first = static_cast<size_t>(std::llround(zero * (1 - share)));
    const size_t last = std::min(bins, first + kept);
    const double lost = loss(others, first, last);
    if (lost >= least) continue;
    least = lost;
    best = {histogram.edge(first), histogram.edge(last)};
  }
  return best;
}

}  // namespace

std::optional<RangeMethod> range_method_from_name(std::string_view name) {
  if (name == "minmax") return RangeMethod::min_max;
  if (name == "percentile") return RangeMethod::percentile;
  if (name == "entropy") return RangeMethod::entropy;
  if (name == "mse") return RangeMethod::mse;
  return std::nullopt;
}

void Histogram::add(std::span<const float> values) {
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    ++counts[bin_of(v)];
    zeros += v == 0;
  }
}

size_t Histogram::bin_of(double value) const {
  const double width = range.most - range.least;
  const auto bins = static_cast<double>(counts.size());
  const double at = width > 0 ? (value - range.least) / width * bins : 0;
  return static_cast<size_t>(std::clamp(at, 0.0, bins - 1));
}

double Histogram::edge(size_t bin) const {
  return range.least +
         (range.most - range.least) * static_cast<double>(bin) / static_cast<double>(counts.size());
}

ValueRange percentile_range(const Histogram& histogram, double percent) {
  const std::vector<uint64_t>& counts = histogram.counts;
  const double spare = sum_of(counts) * (100 - percent) / 200;
  size_t first = 0, last = counts.size();
  for (double left = 0; first + 1 < last; ++first)
    if ((left += static_cast<double>(counts[first])) > spare) break;
  for (double left = 0; last > first + 1; --last)
    if ((left += static_cast<double>(counts[last - 1])) > spare) break;
  return {histogram.edge(first), histogram.edge(last)};
}

ValueRange entropy_range(const Histogram& histogram) { return least_loss(histogram, divergence); }

ValueRange mse_range(const Histogram& histogram) { return least_loss(histogram, square_error); }

}  // namespace tw
