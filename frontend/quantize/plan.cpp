#include "frontend/quantize/plan.h"

#include <algorithm>
#include <array>

namespace tw::onnx_quantize {
namespace {

// Operators that move or compare elements and compute nothing; on integers they are exact.
struct Mover {
  std::string_view op;
  bool all_inputs;  // false: the first input is the data
};
constexpr std::array<Mover, 14> kMovers = {{{"MaxPool", false},
                                            {"Reshape", false},
                                            {"Flatten", false},
                                            {"Transpose", false},
                                            {"Slice", false},
                                            {"Squeeze", false},
                                            {"Unsqueeze", false},
                                            {"Concat", true},
                                            {"Split", false},
                                            {"Gather", false},
                                            {"DepthToSpace", false},
                                            {"SpaceToDepth", false},
                                            {"Expand", false},
                                            {"Identity", false}}};

std::string text_of(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return attribute.s();
  return "";
}

// The inputs whose elements the node only moves; empty for other nodes.
std::vector<std::string> moved_inputs(const onnx::NodeProto& node) {
  if (is_op(node, "Resize")) {
    const std::string mode = text_of(node, "mode");
    if (mode.empty() || mode == "nearest") return {node.input(0)};
    return {};
  }
  for (const Mover& mover : kMovers)
    if (is_op(node, mover.op))
      return mover.all_inputs ? std::vector<std::string>(node.input().begin(), node.input().end())
                              : std::vector<std::string>{node.input(0)};
  return {};
}

bool is_clamp(const onnx::NodeProto& node) { return is_op(node, "Relu") || is_op(node, "Clip"); }

class Planner {
 public:
  Planner(const onnx::GraphProto& graph, const LayerSet& floats) : graph_(graph), index_(graph) {
    const std::vector<int> all = onnx_quantize::products(graph);
    for (size_t i = 0; i < all.size(); ++i)
      if (!floats.contains(i)) plan_.products.push_back(all[i]);
  }

  // Goes backwards, so that all readers of a value are known when its maker is reached.
  QuantPlan run() {
    for (int i = graph_.node_size() - 1; i >= 0; --i) {
      const onnx::NodeProto& node = graph_.node(i);
      if (std::ranges::binary_search(plan_.products, i)) {
        want(node.input(0));
        want(node.input(1));
      }
      move(node);
      if (is_op(node, "Add") && plan_.group_of.contains(result_of(node)) && is_sum(node))
        for (const std::string& input : node.input()) want(input);
    }
    for (auto& [value, group] : plan_.group_of) group = root(value);
    return std::move(plan_);
  }

 private:
  void want(const std::string& value) {
    if (value.empty() || index_.constant(value)) return;
    plan_.group_of.try_emplace(value, value);
  }

  void move(const onnx::NodeProto& node) {
    for (const std::string& input : moved_inputs(node))
      for (const std::string& output : node.output()) {
        if (!plan_.group_of.contains(output) || index_.constant(input)) continue;
        want(input);
        const std::string a = root(input), b = root(output);
        plan_.group_of[a] = b;
      }
  }

  bool is_sum(const onnx::NodeProto& node) const {
    return !index_.constant(node.input(0)) && !index_.constant(node.input(1));
  }

  // The value behind the clamps that become part of the node's kernel.
  std::string result_of(const onnx::NodeProto& node) const {
    std::string value = node.output(0);
    while (const std::optional<int> reader = index_.only_reader(value)) {
      const onnx::NodeProto& next = index_.node(*reader);
      if (!is_clamp(next) || next.input(0) != value) break;
      value = next.output(0);
    }
    return value;
  }

  std::string root(std::string value) const {
    while (plan_.group_of.at(value) != value) value = plan_.group_of.at(value);
    return value;
  }

  const onnx::GraphProto& graph_;
  const GraphIndex index_;
  QuantPlan plan_;
};

}  // namespace

bool is_product(const GraphIndex& index, const onnx::NodeProto& node) {
  if (node.input_size() < 2 || index.constant(node.input(0))) return false;
  const onnx::TensorProto* weights = index.float_constant(node.input(1));
  if (is_op(node, "MatMul")) return weights || !index.constant(node.input(1));
  return weights && (is_op(node, "Conv") || is_op(node, "ConvTranspose") || is_op(node, "Gemm"));
}

std::vector<int> products(const onnx::GraphProto& graph) {
  const GraphIndex index(graph);
  std::vector<int> list;
  for (int i = 0; i < graph.node_size(); ++i)
    if (is_product(index, graph.node(i))) list.push_back(i);
  return list;
}

int channel_axis(const onnx::NodeProto& node, const onnx::TensorProto& weights) {
  if (is_op(node, "Conv")) return 0;
  if (is_op(node, "ConvTranspose")) return integer_of(node, "group", 1) == 1 ? 1 : -1;
  if (is_op(node, "Gemm")) return integer_of(node, "transB", 0) != 0 ? 0 : 1;
  return weights.dims_size() == 2 ? 1 : -1;
}

QuantPlan make_plan(const onnx::GraphProto& graph, const LayerSet& floats) {
  return Planner(graph, floats).run();
}

}  // namespace tw::onnx_quantize
