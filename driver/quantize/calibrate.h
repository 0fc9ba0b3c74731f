// Calibration: runs a model in floats on samples, and records the ranges and means of its values.
#pragma once
#include <functional>
#include <optional>

#include "driver/accuracy/samples.h"
#include "driver/quantize/ranges.h"
#include "driver/run/compiled_network.h"

namespace tw {

// Compiles the models that calibration runs, for this machine.
struct NetworkBuild {
  Target target;

  Expected<CompiledNetwork> compile(const std::string& bytes) const {
    return CompiledNetwork::compile(bytes, CompileOptions(), target);
  }
};

struct CalibrationRule {
  RangeMethod method = RangeMethod::min_max;
  double percent = 99.999;  // for RangeMethod::percentile
};

struct Rounding {
  std::function<ValueRanges(const ValueRanges&)> share;  // makes values share ranges
  bool signed_values = false;
};

struct Calibration {
  ValueRanges ranges;
  ChannelValues means, largest;              // largest: magnitudes
  ChannelValues rounded_means;               // set if a Rounding was given
  std::vector<std::vector<Tensor>> outputs;  // outputs of the model itself, by sample
};

// observing: the model's bytes with `values` as outputs behind its own.
Expected<Calibration> calibrate(const std::string& observing,
                                const std::vector<std::string>& values, const NetworkBuild& build,
                                const SampleSet& samples, const CalibrationRule& rule,
                                const std::optional<Rounding>& rounding = {});

}  // namespace tw
