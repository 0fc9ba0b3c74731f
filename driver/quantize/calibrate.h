// Runs a model in floats on samples and looks at its values.
#pragma once
#include "driver/quantize/network.h"
#include "driver/quantize/ranges.h"
#include "driver/quantize/samples.h"

namespace tw {

struct CalibrationRule {
  RangeMethod method = RangeMethod::min_max;
  double percent = 99.999;  // of percentile
};

struct Calibration {
  ValueRanges ranges;
  ChannelValues means, largest;              // largest: magnitudes
  std::vector<std::vector<Tensor>> outputs;  // the model's own, by sample
};

// observing: the model's bytes with `values` as outputs behind its own.
Expected<Calibration> calibrate(const std::string& observing,
                                const std::vector<std::string>& values, const NetworkBuild& build,
                                const SampleSet& samples, const CalibrationRule& rule);

}  // namespace tw
