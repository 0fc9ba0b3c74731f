#include <algorithm>
#include <cmath>
#include <optional>

#include "frontend/quantize/refine.h"
#include "frontend/quantize/weights.h"

namespace tw::onnx_quantize {
namespace {

constexpr int kSweeps = 20;  // a pair's ranges change with its neighbours'

struct LayerWeights {
  onnx::TensorProto* tensor = nullptr;
  std::vector<float> values;
  void store() const {
    tensor->clear_float_data();
    tensor->set_raw_data(values.data(), values.size() * sizeof(float));
  }
};

struct LayerPair {
  std::string first, bias, second;  // names of constants; bias may be ""
  int64_t groups = 1;               // groups of the second
};

// The next convolution, behind operators that pass a positive factor; null if there is none.
const onnx::NodeProto* next_conv(const GraphIndex& index, const onnx::NodeProto& conv) {
  std::string value = conv.output(0);
  while (const std::optional<int> reader = index.only_reader(value)) {
    const onnx::NodeProto& node = index.node(*reader);
    if (node.input(0) != value) return nullptr;
    if (is_op(node, "Conv")) return &node;
    const bool passes = is_op(node, "Relu") || is_op(node, "LeakyRelu") || is_op(node, "MaxPool");
    if (!passes || node.output_size() != 1) return nullptr;
    value = node.output(0);
  }
  return nullptr;
}

bool own_constant(const GraphIndex& index, const std::string& name) {
  return index.float_constant(name) && index.only_reader(name);
}

std::vector<LayerPair> pairs_of(const onnx::GraphProto& graph) {
  const GraphIndex index(graph);
  std::vector<LayerPair> pairs;
  for (const onnx::NodeProto& node : graph.node()) {
    if (!is_op(node, "Conv") || !own_constant(index, node.input(1))) continue;
    const std::string bias = node.input_size() > 2 ? node.input(2) : "";
    if (!bias.empty() && !own_constant(index, bias)) continue;
    const onnx::NodeProto* next = next_conv(index, node);
    if (!next || !own_constant(index, next->input(1))) continue;
    const int64_t groups = integer_of(*next, "group", 1);
    if (index.constant(next->input(1))->dims(1) * groups != index.constant(node.input(1))->dims(0))
      continue;
    pairs.push_back({node.input(1), bias, next->input(1), groups});
  }
  return pairs;
}

onnx::TensorProto* mutable_constant(onnx::GraphProto& graph, const std::string& name) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer())
    if (tensor.name() == name) return &tensor;
  return nullptr;
}

LayerWeights load(onnx::GraphProto& graph, const std::string& name) {
  LayerWeights weights{mutable_constant(graph, name), {}};
  if (weights.tensor) weights.values = floats_of(*weights.tensor);
  return weights;
}

void equalize_pair(onnx::GraphProto& graph, const LayerPair& pair) {
  LayerWeights first = load(graph, pair.first), second = load(graph, pair.second);
  LayerWeights bias = load(graph, pair.bias);
  const AlongAxis rows(*first.tensor, 0);
  // The input channels of a group, and the input channel of an element of the second weights
  const auto inner = AlongAxis(*second.tensor, 1);
  const size_t outputs = static_cast<size_t>(second.tensor->dims(0));
  const size_t a_group = outputs / static_cast<size_t>(pair.groups);
  const auto input_channel = [&](size_t element) {
    const size_t output = element / inner.inner / inner.channels;
    return output / a_group * inner.channels + inner.channel(element);
  };
  std::vector<double> made(rows.channels), read(rows.channels), factor(rows.channels, 1);
  for (size_t i = 0; i < first.values.size(); ++i) {
    double& most = made[rows.channel(i)];
    most = std::max(most, std::abs(double{first.values[i]}));
  }
  for (size_t i = 0; i < second.values.size(); ++i) {
    double& most = read[input_channel(i)];
    most = std::max(most, std::abs(double{second.values[i]}));
  }
  for (size_t c = 0; c < factor.size(); ++c)
    if (made[c] > 0 && read[c] > 0) factor[c] = std::sqrt(made[c] / read[c]);
  for (size_t i = 0; i < first.values.size(); ++i)
    first.values[i] = static_cast<float>(first.values[i] / factor[rows.channel(i)]);
  for (size_t i = 0; i < second.values.size(); ++i)
    second.values[i] = static_cast<float>(second.values[i] * factor[input_channel(i)]);
  for (size_t c = 0; c < bias.values.size(); ++c)
    bias.values[c] = static_cast<float>(bias.values[c] / factor[c]);
  first.store();
  second.store();
  if (bias.tensor) bias.store();
}

}  // namespace

int equalize_layers(onnx::GraphProto& graph) {
  const std::vector<LayerPair> pairs = pairs_of(graph);
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (const LayerPair& pair : pairs) equalize_pair(graph, pair);
  return static_cast<int>(pairs.size());
}

}  // namespace tw::onnx_quantize
