// The plan of a quantization: the values that are quantized, and the groups that share a scale.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "frontend/quantize/graph_edit.h"
#include "frontend/quantize/quantizable_model.h"

namespace tw::onnx_quantize {

// True for a Conv, ConvTranspose, Gemm or MatMul that can be computed in integers. It multiplies
// inputs 0 and 1. Input 1 is a constant; for MatMul it may be computed.
bool is_product(const GraphIndex& index, const onnx::NodeProto& node);
// The indices of such nodes, in the graph's order.
std::vector<int> products(const onnx::GraphProto& graph);
// The axis of output channels in a product's constant weights; -1 if there is none.
int channel_axis(const onnx::NodeProto& node, const onnx::TensorProto& weights);

struct QuantPlan {
  // Quantized values, each with the value that names its group: a group shares one scale.
  std::map<std::string, std::string> group_of;
  std::vector<int> products;  // nodes, without the layers that stay in floats
};
// Quantizes the inputs of products, and those of sums whose results are quantized. Values between a
// product and an operator in floats, such as a Sigmoid, stay in floats, and so do the results of a
// last layer. Values that operators only move share a scale.
QuantPlan make_plan(const onnx::GraphProto& graph, const LayerSet& floats);

}  // namespace tw::onnx_quantize
