#include "driver/quantize/calibrate.h"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

constexpr size_t kHistogramBins = 2048;

// Statistics of one value over the samples
struct ObservedValue {
  ValueRange range{HUGE_VAL, -HUGE_VAL};
  std::vector<double> sums, largest;  // by channel (axis 1); largest magnitudes
  int64_t per_channel = 0;            // elements of a channel
  bool finite = true;

  void add(const Tensor& tensor) {
    const std::span<const float> values = tensor.as<float>();
    for (const float v : values) {
      range.least = std::min(range.least, double{v});
      range.most = std::max(range.most, double{v});
      finite = finite && std::isfinite(v);
    }
    if (tensor.shape.size() < 2 || tensor.shape[1] == 0) return;
    const auto channels = static_cast<size_t>(tensor.shape[1]);
    if (sums.empty()) {
      sums.resize(channels);
      largest.resize(channels);
    }
    if (sums.size() != channels) return;
    size_t inner = 1;
    for (size_t i = 2; i < tensor.shape.size(); ++i) inner *= static_cast<size_t>(tensor.shape[i]);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t c = i / inner % channels;
      sums[c] += values[i];
      largest[c] = std::max(largest[c], std::abs(double{values[i]}));
    }
    per_channel += static_cast<int64_t>(values.size() / channels);
  }
};

// Runs the network on each sample and shows the values behind its own outputs.
Error observe(const CompiledNetwork& network, const SampleSet& samples, size_t values,
              const std::function<void(std::vector<Tensor> own, std::span<const Tensor>)>& look) {
  for (size_t i = 0; i < samples.size(); ++i) {
    TW_ASSIGN(const Inputs inputs, samples.at(i));
    TW_ASSIGN(std::vector<Tensor> all, network.run(inputs));
    const size_t own = all.size() - values;
    const std::vector<Tensor> seen(
        std::make_move_iterator(all.begin() + static_cast<ptrdiff_t>(own)),
        std::make_move_iterator(all.end()));
    all.resize(own);
    look(std::move(all), seen);
  }
  return Error::success();
}

Error check_seen(const std::vector<std::string>& values, const std::vector<ObservedValue>& seen) {
  std::vector<Diag> problems;
  for (size_t i = 0; i < values.size(); ++i)
    if (!seen[i].finite)
      problems.push_back(
          {DiagCode::invalid_argument,
           "value '" + values[i] + "' is not finite on the data: is the preprocessing right?",
           {},
           {}});
  return make_error(std::move(problems));
}

// Adds the rounded elements of a tensor to the sums of their channels.
void add_rounded(std::span<const float> values, size_t inner, const ScaleAndZero& by, int lowest,
                 std::vector<double>& sums) {
  const auto low = static_cast<float>(lowest - by.zero), high = low + 255;
  for (size_t i = 0; i < values.size(); i += inner) {
    double sum = 0;
    for (const float v : values.subspan(i, inner))
      sum += std::clamp(std::nearbyint(v / by.scale), low, high);
    sums[i / inner % sums.size()] += sum * by.scale;
  }
}

// The means by channel of values after rounding by their ranges
Expected<ChannelValues> rounded_means(const CompiledNetwork& network, const SampleSet& samples,
                                      const std::vector<std::string>& values,
                                      const std::vector<ObservedValue>& seen,
                                      const ValueRanges& ranges, bool signed_values) {
  std::vector<std::vector<double>> sums;
  std::vector<ScaleAndZero> scales;
  for (size_t i = 0; i < values.size(); ++i) {
    sums.emplace_back(seen[i].sums.size());
    scales.push_back(scale_of(ranges.at(values[i]), signed_values));
  }
  TW_TRY(observe(network, samples, values.size(),
                 [&](const std::vector<Tensor>&, std::span<const Tensor> tensors) {
                   for (size_t i = 0; i < values.size(); ++i) {
                     const std::vector<int64_t>& shape = tensors[i].shape;
                     if (sums[i].empty() || shape[1] != static_cast<int64_t>(sums[i].size()))
                       continue;
                     size_t inner = 1;
                     for (size_t d = 2; d < shape.size(); ++d)
                       inner *= static_cast<size_t>(shape[d]);
                     if (inner > 0)
                       add_rounded(tensors[i].as<float>(), inner, scales[i],
                                   signed_values ? -128 : 0, sums[i]);
                   }
                 }));
  ChannelValues means;
  for (size_t i = 0; i < values.size(); ++i)
    for (const double sum : sums[i])
      means[values[i]].push_back(sum /
                                 static_cast<double>(std::max<int64_t>(1, seen[i].per_channel)));
  return means;
}

ValueRange range_of(const ObservedValue& seen, const Histogram& histogram,
                    const CalibrationRule& rule) {
  switch (rule.method) {
    case RangeMethod::min_max: return seen.range;
    case RangeMethod::percentile: return percentile_range(histogram, rule.percent);
    case RangeMethod::entropy: return entropy_range(histogram);
    case RangeMethod::mse: return mse_range(histogram);
  }
  TW_UNREACHABLE("bad method");
}

}  // namespace

Expected<Calibration> calibrate(const std::string& observing,
                                const std::vector<std::string>& values, const NetworkBuild& build,
                                const SampleSet& samples, const CalibrationRule& rule,
                                const std::optional<Rounding>& rounding) {
  TW_ASSIGN(const CompiledNetwork network, build.compile(observing));
  Calibration result;
  std::vector<ObservedValue> seen(values.size());
  const auto look_at_extremes = [&](std::vector<Tensor> own, std::span<const Tensor> tensors) {
    result.outputs.push_back(std::move(own));
    for (size_t i = 0; i < values.size(); ++i) seen[i].add(tensors[i]);
  };
  TW_TRY(observe(network, samples, values.size(), look_at_extremes));
  TW_TRY(check_seen(values, seen));
  std::vector<Histogram> histograms;
  for (const ObservedValue& s : seen) histograms.emplace_back(s.range, kHistogramBins);
  const auto count = [&](const std::vector<Tensor>&, std::span<const Tensor> tensors) {
    for (size_t i = 0; i < values.size(); ++i) histograms[i].add(tensors[i].as<float>());
  };
  if (rule.method != RangeMethod::min_max) TW_TRY(observe(network, samples, values.size(), count));
  for (size_t i = 0; i < values.size(); ++i) {
    result.ranges[values[i]] = range_of(seen[i], histograms[i], rule);
    result.largest[values[i]] = seen[i].largest;
    std::vector<double>& means = result.means[values[i]];
    for (const double sum : seen[i].sums)
      means.push_back(sum / static_cast<double>(std::max<int64_t>(1, seen[i].per_channel)));
  }
  if (rounding) {
    result.ranges = rounding->share(result.ranges);
    TW_ASSIGN(result.rounded_means, rounded_means(network, samples, values, seen, result.ranges,
                                                  rounding->signed_values));
  }
  return result;
}

}  // namespace tw
