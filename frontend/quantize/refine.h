// Changes to a float model that bring its integers closer to it.
#pragma once
#include "frontend/quantize/graph_edit.h"
#include "frontend/quantize/quantizable_model.h"

namespace tw::onnx_quantize {

// Cross-layer equalization: consecutive convolutions get weights of equal range in each channel.
// Between them there may only be operators that pass a positive factor (Relu, LeakyRelu, MaxPool).
int equalize_layers(onnx::GraphProto& graph);

// Values that only depthwise convolutions read: their weights can take up a factor for each
// channel.
std::vector<std::string> balanceable_values(const onnx::GraphProto& graph);
// Multiplies the channels of those values by constants so that all are as large as the largest, if
// that gains much, and divides the weights by them. `largest` has magnitudes by axis 1. Returns the
// number of values.
int balance_channels(onnx::GraphProto& graph, const ChannelValues& largest);

// For layers that are not in form.floats: takes off the bias what rounding the weights and the
// input adds to the channel's mean. Handles Conv and Gemm, as MatMul has no bias. Returns the
// number of layers.
int correct_biases(onnx::GraphProto& graph, const QdqForm& form);

// Packs products by constants as MatMulNBits, and rows of constants as GatherBlockQuantized.
PackedWeights pack_weights(onnx::ModelProto& model, const BlockForm& form);

}  // namespace tw::onnx_quantize
