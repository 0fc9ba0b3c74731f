#include <algorithm>
#include <cmath>

#include "frontend/quantize/refine.h"
#include "frontend/quantize/weights.h"

namespace tw::onnx_quantize {
namespace {

// The largest factor of a channel: one that is nearly empty on the data may not be so later.
constexpr double kLargestFactor = 256;
// Values are balanced if their mean channel would lose at least this many of its 8 bits.
constexpr double kLostBits = 1;

// True for a convolution that keeps channels apart and has weights of its own.
bool is_depthwise(const GraphIndex& index, const onnx::NodeProto& node, const std::string& value) {
  if (!is_op(node, "Conv") || node.input(0) != value || !index.only_reader(node.input(1)))
    return false;
  const onnx::TensorProto* weights = index.float_constant(node.input(1));
  const int64_t groups = integer_of(node, "group", 1);
  return weights && groups > 1 && weights->dims(1) == 1 && weights->dims(0) % groups == 0;
}

// The factor of each channel; empty if balancing gains too little.
std::vector<float> factors_of(const std::vector<double>& largest) {
  const double most = largest.empty() ? 0 : *std::ranges::max_element(largest);
  std::vector<float> factors;
  double bits = 0;
  for (const double own : largest) {
    if (!(most > 0)) return {};
    const double factor = std::min(most / std::max(own, most / kLargestFactor), kLargestFactor);
    factors.push_back(static_cast<float>(factor));
    bits += std::log2(factor);
  }
  if (bits < kLostBits * static_cast<double>(largest.size())) return {};
  return factors;
}

void divide_weights(onnx::GraphProto& graph, const onnx::NodeProto& node,
                    const std::vector<float>& factors) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.name() != node.input(1)) continue;
    const AlongAxis outputs(tensor, 0);
    std::vector<float> values = floats_of(tensor);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] /= factors[outputs.channel(i) * factors.size() / outputs.channels];
    tensor.clear_float_data();
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  }
}

}  // namespace

std::vector<std::string> balanceable_values(const onnx::GraphProto& graph) {
  const GraphIndex index(graph);
  std::vector<std::string> values;
  for (const onnx::NodeProto& maker : graph.node())
    for (const std::string& value : maker.output()) {
      const std::vector<int>& readers = index.readers(value);
      if (!readers.empty() && std::ranges::all_of(readers, [&](int reader) {
            return is_depthwise(index, index.node(reader), value);
          }))
        values.push_back(value);
    }
  return values;
}

int balance_channels(onnx::GraphProto& graph, const ChannelValues& largest) {
  const onnx::GraphProto before = graph;
  const GraphIndex index(before);
  FreeNames names(graph);
  std::map<std::string, std::string> balanced;
  std::map<std::string, onnx::NodeProto> behind;  // by the value that it multiplies
  for (const std::string& value : balanceable_values(before)) {
    const auto seen = largest.find(value);
    if (seen == largest.end()) continue;
    const std::vector<float> factors = factors_of(seen->second);
    const onnx::NodeProto& first = index.node(index.readers(value).front());
    if (factors.size() != static_cast<size_t>(integer_of(first, "group", 1))) continue;
    std::vector<int64_t> shape(static_cast<size_t>(index.constant(first.input(1))->dims_size()), 1);
    shape[1] = static_cast<int64_t>(factors.size());
    const std::string constant = names.make(value + "_factors");
    add_floats(graph, constant, shape, factors);
    balanced[value] = names.make(value + "_balanced");
    behind[value] = make_node("Mul", {value, constant}, balanced[value]);
    for (const int reader : index.readers(value))
      divide_weights(graph, index.node(reader), factors);
  }
  graph.clear_node();
  for (onnx::NodeProto node : before.node()) {
    for (std::string& input : *node.mutable_input())
      if (const auto found = balanced.find(input); found != balanced.end()) input = found->second;
    *graph.add_node() = node;
    for (const std::string& output : node.output())
      if (const auto found = behind.find(output); found != behind.end())
        *graph.add_node() = found->second;
  }
  return static_cast<int>(balanced.size());
}

}  // namespace tw::onnx_quantize
