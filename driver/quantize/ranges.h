// Chooses the range that a value's integers cover, from what the value held on the data.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/quantize/quantizable_model.h"

namespace tw {

enum class RangeMethod : uint8_t {
  min_max,     // all values seen
  percentile,  // without the outermost values
  entropy,     // the clipping that changes the distribution least (Kullback-Leibler)
  mse          // the clipping with the least mean square error
};
std::optional<RangeMethod> range_method_from_name(std::string_view name);

// Counts of values in equal bins of [least, most].
struct Histogram {
  ValueRange range;
  std::vector<uint64_t> counts;
  uint64_t zeros = 0;  // counted values that are exactly 0

  Histogram(ValueRange of, size_t bins) : range(of), counts(bins) {}
  void add(std::span<const float> values);
  double edge(size_t bin) const;  // lower end of the bin
  size_t bin_of(double value) const;
};

// The narrowest range that leaves out no more than (100 - percent) / 2 percent on each side.
ValueRange percentile_range(const Histogram& histogram, double percent);
// As in TensorRT's calibrator: among ranges that clip more and more, the one whose 256 steps
// distort the distribution of values least
ValueRange entropy_range(const Histogram& histogram);
// Among the same ranges, the one with the least mean square error of rounding and clipping
ValueRange mse_range(const Histogram& histogram);

}  // namespace tw
