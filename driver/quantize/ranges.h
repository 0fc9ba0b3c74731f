// From what a value held on the data to the range that its integers cover.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/quantize/quantizable_model.h"

namespace tw {

enum class RangeMethod : uint8_t {
  min_max,     // all that was seen
  percentile,  // without the outermost values
  entropy,     // the clipping that changes the distribution least (Kullback-Leibler)
  mse          // the clipping with the least mean square error
};
std::optional<RangeMethod> range_method_from_name(std::string_view name);

// Counts of values in equal bins of [least, most].
struct Histogram {
  ValueRange range;
  std::vector<uint64_t> counts;
  uint64_t zeros = 0;  // of the counts, those of exactly 0

  Histogram(ValueRange of, size_t bins) : range(of), counts(bins) {}
  void add(std::span<const float> values);
  double edge(size_t bin) const;  // where the bin begins
  size_t bin_of(double value) const;
};

// The narrowest range that leaves out no more than (100 - percent) / 2 percent on each side.
ValueRange percentile_range(const Histogram& histogram, double percent);
// As TensorRT's calibrator: of ranges that are clipped more and more, the one whose 256 steps tell
// least of the values' distribution wrongly.
ValueRange entropy_range(const Histogram& histogram);
// Of the same ranges the one whose rounding and clipping have the least mean square error.
ValueRange mse_range(const Histogram& histogram);

}  // namespace tw
