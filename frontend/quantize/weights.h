// Constant weights as integers, with a scale for each channel.
#pragma once
#include <cstdint>
#include <vector>

#include "frontend/quantize/graph_edit.h"

namespace tw::onnx_quantize {

// The position of a tensor's element along an axis; for axis -1 it is always 0.
struct AlongAxis {
  AlongAxis(const onnx::TensorProto& tensor, int axis);
  size_t channel(size_t element) const { return element / inner % channels; }
  size_t channels = 1, inner = 1;
};

struct IntegerWeights {
  std::vector<int8_t> values;
  std::vector<float> scales;  // by channel
};
// Rounds symmetrically: the largest magnitude of a channel gives its scale. `least_scales` are
// lower limits by channel, so that a bias fits 32 bits; may be empty.
IntegerWeights round_weights(const std::vector<float>& weights, const AlongAxis& along, int bits,
                             const std::vector<double>& least_scales);

}  // namespace tw::onnx_quantize
