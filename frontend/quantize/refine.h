// Changes of a model in floats that make its integers closer to it.
#pragma once
#include "frontend/quantize/graph_edit.h"
#include "frontend/quantize/quantizable_model.h"

namespace tw::onnx_quantize {

// Cross-layer equalization: convolutions in a row, with nothing between them that scaling by a
// positive number passes (Relu, LeakyRelu, MaxPool), get weights of one range in each channel.
int equalize_layers(onnx::GraphProto& graph);

// Values that depthwise convolutions alone read: a factor a channel can move into their weights.
std::vector<std::string> balanceable_values(const onnx::GraphProto& graph);
// Multiplies channels of those values by constants so that all are as large as the largest, where
// that gains much, and divides the weights by them. largest: magnitudes by axis 1.
// Returns the number of values.
int balance_channels(onnx::GraphProto& graph, const ChannelValues& largest);

// Of layers that form.floats does not name: the bias less what rounding the weights and the input
// adds to the channel's mean. Of Conv and Gemm, as MatMul has none.
int correct_biases(onnx::GraphProto& graph, const QdqForm& form);

// Products by constants as MatMulNBits, rows of constants as GatherBlockQuantized.
PackedWeights pack_weights(onnx::ModelProto& model, const BlockForm& form);

}  // namespace tw::onnx_quantize
