#include "frontend/quantize/weights.h"

#include <algorithm>
#include <cmath>

namespace tw::onnx_quantize {

AlongAxis::AlongAxis(const onnx::TensorProto& tensor, int axis) {
  if (axis < 0) return;
  channels = static_cast<size_t>(tensor.dims(axis));
  for (int i = axis + 1; i < tensor.dims_size(); ++i) inner *= static_cast<size_t>(tensor.dims(i));
}

IntegerWeights round_weights(const std::vector<float>& weights, const AlongAxis& along, int bits,
                             const std::vector<double>& least_scales) {
  const double most = (1 << (bits - 1)) - 1;
  std::vector<double> largest(along.channels);
  for (size_t i = 0; i < weights.size(); ++i) {
    double& of_channel = largest[along.channel(i)];
    of_channel = std::max(of_channel, std::abs(double{weights[i]}));
  }
  IntegerWeights result;
  for (size_t c = 0; c < along.channels; ++c) {
    double scale = largest[c] / most;
    if (c < least_scales.size()) scale = std::max(scale, least_scales[c]);
    const auto rounded = static_cast<float>(scale);
    result.scales.push_back(std::isnormal(rounded) ? rounded : 1.0f);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const double q = std::nearbyint(double{weights[i]} / result.scales[along.channel(i)]);
    result.values.push_back(static_cast<int8_t>(std::clamp(q, -most, most)));
  }
  return result;
}

}  // namespace tw::onnx_quantize
