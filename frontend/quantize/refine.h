// Changes of a model in floats that make its integers closer to it.
#pragma once
#include "frontend/quantize/graph_edit.h"
#include "frontend/quantize/quantizable_model.h"

namespace tw::onnx_quantize {

// Cross-layer equalization: convolutions in a row, with nothing between them that scaling by a
// positive number passes (Relu, LeakyRelu, MaxPool), get weights of one range in each channel.
int equalize_layers(onnx::GraphProto& graph);

// Of layers that form.floats does not name: the bias less what rounding the weights adds to the
// channel's mean. Of Conv and Gemm, as MatMul has none.
int correct_biases(onnx::GraphProto& graph, const QdqForm& form);

// MatMul by constants as MatMulNBits.
int pack_weights(onnx::ModelProto& model, int bits, int block);

}  // namespace tw::onnx_quantize
