// Constant weights as integers with a scale a channel.
#pragma once
#include <cstdint>
#include <vector>

#include "frontend/quantize/graph_edit.h"

namespace tw::onnx_quantize {

// Where an element of a tensor stands along an axis; axis -1: always 0.
struct AlongAxis {
  AlongAxis(const onnx::TensorProto& tensor, int axis);
  size_t channel(size_t element) const { return element / inner % channels; }
  size_t channels = 1, inner = 1;
};

struct IntegerWeights {
  std::vector<int8_t> values;
  std::vector<float> scales;  // by channel
};
// The largest magnitude of each channel, symmetric. least_scales: the smallest that serve, by
// channel (that a bias fits 32 bits); may be empty.
IntegerWeights round_weights(const std::vector<float>& weights, const AlongAxis& along, int bits,
                             const std::vector<double>& least_scales);

}  // namespace tw::onnx_quantize
