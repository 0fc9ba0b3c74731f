#include "frontend/quantize/write_qdq.h"

#include <algorithm>
#include <cmath>

#include "frontend/quantize/weights.h"

namespace tw::onnx_quantize {
namespace {

class QdqWriter {
 public:
  QdqWriter(onnx::GraphProto& graph, const QuantPlan& plan, const ValueRanges& ranges,
            const QdqForm& form)
      : graph_(graph), before_(graph), index_(before_), plan_(plan), form_(form), names_(graph) {
    for (const auto& [group, range] : group_ranges(plan, ranges))
      add_scale(group, scale_of(range, signed_()));
  }

  void run() {
    graph_.clear_node();
    for (const onnx::ValueInfoProto& input : before_.input()) wrap(input.name());
    for (int i = 0; i < before_.node_size(); ++i) {
      onnx::NodeProto node = before_.node(i);
      if (std::ranges::binary_search(plan_.products, i)) integer_constants(node);
      for (std::string& input : *node.mutable_input())
        if (const auto wrapped = read_as_.find(input); wrapped != read_as_.end())
          input = wrapped->second;
      *graph_.add_node() = node;
      for (const std::string& output : node.output()) wrap(output);
    }
    drop_unread(graph_);
  }

 private:
  struct Scale {
    ScaleAndZero value;
    std::string scale, zero;  // names of initializers
  };

  bool signed_() const { return form_.signed_activations; }

  void add_scale(const std::string& group, const ScaleAndZero& value) {
    Scale& made = scales_[group];
    made = {value, names_.make(group + "_scale"), names_.make(group + "_zero_point")};
    add_floats(graph_, made.scale, {}, {&value.scale, 1});
    add_bytes(graph_, made.zero, signed_() ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8, {},
              std::string(1, static_cast<char>(value.zero)));
  }

  // Adds the pair behind the value's maker. All readers see it, except outputs and inner graphs.
  void wrap(const std::string& value) {
    const auto group = plan_.group_of.find(value);
    if (group == plan_.group_of.end()) return;
    const Scale& scale = scales_.at(group->second);
    const std::string integers = names_.make(value + "_QuantizeLinear");
    const std::string back = names_.make(value + "_DequantizeLinear");
    *graph_.add_node() = make_node("QuantizeLinear", {value, scale.scale, scale.zero}, integers);
    *graph_.add_node() = make_node("DequantizeLinear", {integers, scale.scale, scale.zero}, back);
    read_as_[value] = back;
  }

  // Quantizes the constants of a product: its weights, and its bias if that is added to the sums.
  void integer_constants(onnx::NodeProto& node) {
    const onnx::TensorProto* weights = index_.float_constant(node.input(1));
    if (!weights) return;
    const AlongAxis along(*weights, channel_axis(node, *weights));
    const double x_scale = scales_.at(plan_.group_of.at(node.input(0))).value.scale;
    const onnx::TensorProto* bias = sum_bias(node, along);
    std::vector<double> least;
    const std::vector<float> b = bias ? floats_of(*bias) : std::vector<float>();
    for (const float value : b) least.push_back(std::abs(double{value}) / (x_scale * 0x1p30));
    if (along.channels == 1 && !least.empty()) least = {*std::ranges::max_element(least)};
    const IntegerWeights rounded = round_weights(floats_of(*weights), along, form_.weight_bits,
                                                 least);
    const int axis = channel_axis(node, *weights);
    const std::vector<int64_t> dims(weights->dims().begin(), weights->dims().end());
    const std::string name = node.input(1);
    node.set_input(
        1, constant(name, onnx::TensorProto::INT8, dims,
                    {reinterpret_cast<const char*>(rounded.values.data()), rounded.values.size()},
                    rounded.scales, axis));
    if (bias) node.set_input(2, integer_bias(node.input(2), b, x_scale, rounded.scales));
  }

  // The bias, if it is added to the sums as it is.
  const onnx::TensorProto* sum_bias(const onnx::NodeProto& node, const AlongAxis& along) const {
    if (node.input_size() < 3) return nullptr;
    const onnx::TensorProto* bias = index_.float_constant(node.input(2));
    if (!bias || bias->dims_size() != 1) return nullptr;
    if (is_op(node, "Gemm") && (real_of(node, "alpha", 1) != 1 || real_of(node, "beta", 1) != 1 ||
                                static_cast<size_t>(bias->dims(0)) != along.channels))
      return nullptr;
    return bias;
  }

  std::string integer_bias(const std::string& name, const std::vector<float>& bias, double x_scale,
                           const std::vector<float>& w_scales) {
    std::vector<int32_t> values;
    std::vector<float> scales;
    for (size_t c = 0; c < bias.size(); ++c) {
      const float w_scale = w_scales.size() == 1 ? w_scales[0] : w_scales[c];
      const float scale = static_cast<float>(x_scale) * w_scale;
      if (w_scales.size() != 1 || c == 0) scales.push_back(scale);
      const double q = std::nearbyint(double{bias[c]} / scale);
      values.push_back(static_cast<int32_t>(std::clamp(q, -0x1p31, 0x1p31 - 1)));
    }
    return constant(name, onnx::TensorProto::INT32, {static_cast<int64_t>(bias.size())},
                    {reinterpret_cast<const char*>(values.data()), values.size() * 4}, scales, 0);
  }

  // Adds integers and their DequantizeLinear; the float constant keeps its name for other readers.
  std::string constant(const std::string& name, int type, const std::vector<int64_t>& dims,
                       const std::string& bytes, const std::vector<float>& scales, int axis) {
    const bool by_channel = axis >= 0 &&
                            !(scales.size() == 1 && dims[static_cast<size_t>(axis)] != 1);
    const std::vector<int64_t> shape =
        by_channel ? std::vector<int64_t>{static_cast<int64_t>(scales.size())}
                   : std::vector<int64_t>{};
    const std::string integers = names_.make(name + "_quantized");
    const std::string scale = names_.make(name + "_scale");
    const std::string zero = names_.make(name + "_zero_point");
    const std::string back = names_.make(name + "_DequantizeLinear");
    add_bytes(graph_, integers, type, dims, bytes);
    add_floats(graph_, scale, shape, scales);
    const size_t width = type == onnx::TensorProto::INT32 ? 4 : 1;
    add_bytes(graph_, zero, type, shape, std::string(scales.size() * width, '\0'));
    onnx::NodeProto node = make_node("DequantizeLinear", {integers, scale, zero}, back);
    if (by_channel) set_integer(node, "axis", axis);
    *graph_.add_node() = node;
    return back;
  }

  onnx::GraphProto& graph_;
  const onnx::GraphProto before_;
  const GraphIndex index_;
  const QuantPlan& plan_;
  const QdqForm& form_;
  FreeNames names_;
  std::map<std::string, Scale> scales_;         // by group
  std::map<std::string, std::string> read_as_;  // quantized values -> what readers see
};

}  // namespace

ValueRanges group_ranges(const QuantPlan& plan, const ValueRanges& ranges) {
  ValueRanges of_group;
  for (const auto& [value, group] : plan.group_of) {
    const ValueRange& range = ranges.at(value);
    ValueRange& all = of_group.try_emplace(group, range).first->second;
    all = {std::min(all.least, range.least), std::max(all.most, range.most)};
  }
  return of_group;
}

void write_qdq(onnx::GraphProto& graph, const QuantPlan& plan, const ValueRanges& ranges,
               const QdqForm& form) {
  QdqWriter(graph, plan, ranges, form).run();
}

}  // namespace tw::onnx_quantize
