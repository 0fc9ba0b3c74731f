// Which values of a graph are quantized, and which of them share a scale.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "frontend/quantize/graph_edit.h"
#include "frontend/quantize/quantizable_model.h"

namespace tw::onnx_quantize {

// Conv, ConvTranspose, Gemm or MatMul that can be computed in integers. Inputs 0 and 1 are
// multiplied; the second is a constant or, of MatMul, computed.
bool is_product(const GraphIndex& index, const onnx::NodeProto& node);
// In the graph's order: indices of nodes.
std::vector<int> products(const onnx::GraphProto& graph);
// The output channels' axis of the constant weights of a product; -1: there is none of its own.
int channel_axis(const onnx::NodeProto& node, const onnx::TensorProto& weights);

struct QuantPlan {
  // Quantized values, each with the one that names its group: values of a group share their scale.
  std::map<std::string, std::string> group_of;
  std::vector<int> products;  // nodes, those of layers that stay in floats left out
};
// Inputs of products are quantized, and of sums whose results are. What lies between a product and
// an operator in floats, such as a Sigmoid, is not, nor are a last layer's results. Values that
// operators only move share a scale.
QuantPlan make_plan(const onnx::GraphProto& graph, const LayerSet& floats);

}  // namespace tw::onnx_quantize
