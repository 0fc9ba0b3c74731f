// Runs a model in floats on samples and looks at its values.
#pragma once
#include <functional>
#include <optional>

#include "driver/accuracy/samples.h"
#include "driver/quantize/ranges.h"
#include "driver/run/compiled_network.h"

namespace tw {

// What compiles the models that are looked at: this machine's target.
struct NetworkBuild {
  Target target;

  Expected<CompiledNetwork> compile(const std::string& bytes) const {
    return CompiledNetwork::compile(bytes, CompileOptions(), target);
  }
};

struct CalibrationRule {
  RangeMethod method = RangeMethod::min_max;
  double percent = 99.999;  // of percentile
};

// How values are rounded by their ranges.
struct Rounding {
  std::function<ValueRanges(const ValueRanges&)> share;  // what they share
  bool signed_values = false;
};

struct Calibration {
  ValueRanges ranges;
  ChannelValues means, largest;              // largest: magnitudes
  ChannelValues rounded_means;               // where a Rounding was given
  std::vector<std::vector<Tensor>> outputs;  // the model's own, by sample
};

// observing: the model's bytes with `values` as outputs behind its own.
Expected<Calibration> calibrate(const std::string& observing,
                                const std::vector<std::string>& values, const NetworkBuild& build,
                                const SampleSet& samples, const CalibrationRule& rule,
                                const std::optional<Rounding>& rounding = {});

}  // namespace tw
