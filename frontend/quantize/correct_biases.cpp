#include "frontend/quantize/plan.h"
#include "frontend/quantize/refine.h"
#include "frontend/quantize/weights.h"

namespace tw::onnx_quantize {
namespace {

// The shift that rounding adds to the mean of each output channel. `rounded_means` are the means of
// the rounded input, empty if it is not rounded. The result is empty if the means belong to other
// channels.
std::vector<double> mean_shift(const onnx::NodeProto& node, const onnx::TensorProto& weights,
                               const std::vector<double>& means,
                               const std::vector<double>& rounded_means, int bits) {
  const AlongAxis along(weights, channel_axis(node, weights));
  const int input_axis = 1 - channel_axis(node, weights);
  const AlongAxis inputs(weights, input_axis);
  const auto groups = static_cast<size_t>(is_op(node, "Conv") ? integer_of(node, "group", 1) : 1);
  if (groups == 0 || means.size() != inputs.channels * groups || along.channels % groups != 0)
    return {};
  const std::vector<double>& with = rounded_means.size() == means.size() ? rounded_means : means;
  const std::vector<float> exact = floats_of(weights);
  const IntegerWeights rounded = round_weights(exact, along, bits, {});
  std::vector<double> shift(along.channels);
  for (size_t i = 0; i < exact.size(); ++i) {
    const size_t c = along.channel(i);
    const size_t input = c / (along.channels / groups) * inputs.channels + inputs.channel(i);
    shift[c] += static_cast<double>(rounded.values[i]) * rounded.scales[c] * with[input] -
                exact[i] * means[input];
  }
  return shift;
}

}  // namespace

int correct_biases(onnx::GraphProto& graph, const QdqForm& form) {
  const onnx::GraphProto before = graph;
  const GraphIndex index(before);
  FreeNames names(graph);
  const std::vector<int> layers = products(before);
  int corrected = 0;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    onnx::NodeProto& node = *graph.mutable_node(layers[layer]);
    const onnx::TensorProto* weights = index.float_constant(node.input(1));
    const auto means = form.means.find(node.input(0));
    const bool fits = is_op(node, "Conv") ||
                      (is_op(node, "Gemm") && real_of(node, "alpha", 1) == 1 &&
                       real_of(node, "beta", 1) == 1 && integer_of(node, "transA", 0) == 0);
    if (form.floats.contains(layer) || !weights || !fits || means == form.means.end()) continue;
    const auto rounded = form.rounded_means.find(node.input(0));
    const std::vector<double> shift = mean_shift(
        node, *weights, means->second,
        rounded == form.rounded_means.end() ? std::vector<double>() : rounded->second,
        form.weight_bits);
    const bool biased = node.input_size() > 2 && !node.input(2).empty();
    const onnx::TensorProto* old = biased ? index.float_constant(node.input(2)) : nullptr;
    if (shift.empty() || (biased && !old)) continue;
    std::vector<float> bias = old ? floats_of(*old) : std::vector<float>(shift.size());
    if (bias.size() != shift.size()) continue;
    for (size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<float>(bias[c] - shift[c]);
    const std::string name = names.make((biased ? node.input(2) : node.output(0)) + "_corrected");
    add_floats(graph, name, {static_cast<int64_t>(bias.size())}, bias);
    while (node.input_size() < 3) node.add_input("");
    node.set_input(2, name);
    ++corrected;
  }
  drop_unread(graph);
  return corrected;
}

}  // namespace tw::onnx_quantize
