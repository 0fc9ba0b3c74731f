// Rewriting of ONNX graphs for quantization, on small graphs in ONNX's text form.
#include <doctest/doctest.h>
#include <onnx/defs/parser.h>

#include <cmath>

#include "frontend/quantize/plan.h"
#include "frontend/quantize/prepare.h"
#include "frontend/quantize/refine.h"
#include "frontend/quantize/weights.h"
#include "frontend/quantize/write_qdq.h"

namespace tw::onnx_quantize {
namespace {

onnx::GraphProto graph_of(const char* text) {
  onnx::GraphProto graph;
  onnx::OnnxParser parser(text);
  const auto status = parser.Parse(graph);
  REQUIRE_MESSAGE(status.IsOK(), status.ErrorMessage());
  return graph;
}

// Adds a constant with the elements first, first + step, ...
void give(onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& dims,
          float first, float step) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + step * static_cast<float>(i));
  add_floats(graph, name, dims, values);
}

std::vector<float> constant(const onnx::GraphProto& graph, const std::string& name) {
  return floats_of(*GraphIndex(graph).constant(name));
}

TEST_CASE("quantize: values that are only moved share a scale, last results stay floats") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,2,8,8] x) => (float[1,2,4,4] y) {
    a = Conv(x, w)
    b = Relu(a)
    c = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
    d = Sigmoid(c)
    e = Concat<axis=1>(c, d)
    y = Conv(e, v)
  })");
  give(graph, "w", {2, 2, 1, 1}, 1, 1);
  give(graph, "v", {2, 4, 1, 1}, 1, 1);
  const QuantPlan plan = make_plan(graph, {});
  CHECK(plan.products.size() == 2);
  CHECK(plan.group_of.contains("x"));
  CHECK_FALSE(plan.group_of.contains("a"));  // quantized behind the Relu instead
  CHECK_FALSE(plan.group_of.contains("y"));
  for (const char* value : {"b", "c", "d"}) CHECK(plan.group_of.at(value) == plan.group_of.at("e"));
  CHECK(plan.group_of.at("x") != plan.group_of.at("e"));
  // A first layer in floats leaves its input in floats.
  CHECK_FALSE(make_plan(graph, {0}).group_of.contains("x"));

  const ValueRanges ranges = {
      {"x", {-1, 1}}, {"b", {0, 4}}, {"c", {0, 4}}, {"d", {0, 1}}, {"e", {0, 4}}};
  write_qdq(graph, plan, ranges, {});
  int pairs = 0;
  for (const onnx::NodeProto& node : graph.node()) pairs += is_op(node, "QuantizeLinear");
  CHECK(pairs == 5);
}

TEST_CASE("quantize: sums of two values are quantized where their result is") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,2,8,8] x) => (float[1,2,8,8] y) {
    a = Conv(x, w)
    s = Add(a, x)
    r = Relu(s)
    y = Conv(r, w)
  })");
  give(graph, "w", {2, 2, 1, 1}, 1, 1);
  const QuantPlan plan = make_plan(graph, {});
  for (const char* value : {"x", "a", "r"}) CHECK(plan.group_of.at(value) == value);
  CHECK_FALSE(plan.group_of.contains("s"));
}

TEST_CASE("quantize: a batch normalization becomes a part of its convolution") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,1,2,2] x) => (float[1,2,2,2] y) {
    a = Conv(x, w)
    y = BatchNormalization<epsilon=0.0>(a, s, b, m, v)
  })");
  give(graph, "w", {2, 1, 1, 1}, 1, 1);
  give(graph, "s", {2}, 2, 1);
  give(graph, "b", {2}, 5, 1);
  give(graph, "m", {2}, 1, 0);
  give(graph, "v", {2}, 4, 0);
  fold_batch_norms(graph);
  REQUIRE(graph.node_size() == 1);
  CHECK(graph.node(0).output(0) == "y");
  CHECK(constant(graph, graph.node(0).input(1)) == std::vector<float>{1, 3});  // 1 * 2/2, 2 * 3/2
  CHECK(constant(graph, graph.node(0).input(2)) == std::vector<float>{4, 4.5});
}

TEST_CASE("quantize: equalized layers have one range a channel and compute the same") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,1,1,1] x) => (float[1,1,1,1] y) {
    a = Conv(x, w, b)
    r = Relu(a)
    y = Conv(r, v)
  })");
  give(graph, "w", {2, 1, 1, 1}, 1, 99);
  give(graph, "b", {2}, 1, 1);
  give(graph, "v", {1, 2, 1, 1}, 4, -3);
  CHECK(equalize_layers(graph) == 1);
  const auto w = constant(graph, "w"), v = constant(graph, "v"), b = constant(graph, "b");
  for (size_t c = 0; c < 2; ++c) CHECK(w[c] == doctest::Approx(v[c]));
  CHECK(w[0] * v[0] == doctest::Approx(4));
  CHECK(w[1] * v[1] == doctest::Approx(100));
  CHECK(b[1] * v[1] == doctest::Approx(2));
}

TEST_CASE("quantize: what lies between a product and an operator in floats stays in floats") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,2,8,8] x) => (float[1,2,8,8] y) {
    a = Conv(x, w)
    s = Sigmoid(a)
    m = Mul(a, s)
    y = Conv(m, w)
  })");
  give(graph, "w", {2, 2, 1, 1}, 1, 1);
  const QuantPlan plan = make_plan(graph, {});
  CHECK(plan.group_of.contains("m"));
  for (const char* value : {"a", "s", "y"}) CHECK_FALSE(plan.group_of.contains(value));
}

TEST_CASE("quantize: balanced channels are equally large, and depthwise weights undo it") {
  onnx::GraphProto graph = graph_of(
      R"(g (float[1,2,8,8] x) => (float[1,4,8,8] y, float[1,2,8,8] z) {
    a = Sigmoid(x)
    y = Conv<group=2>(a, w)
    b = Tanh(x)
    z = Conv<group=2>(b, v)
  })");
  give(graph, "w", {4, 1, 1, 1}, 32, 32);
  give(graph, "v", {2, 1, 1, 1}, 1, 1);
  CHECK(balanceable_values(graph) == std::vector<std::string>{"a", "b"});
  // The channels of b have almost equal sizes: balancing gains nothing there.
  CHECK(balance_channels(graph, {{"a", {64, 2}}, {"b", {1, 0.9}}}) == 1);
  REQUIRE(graph.node_size() == 5);
  REQUIRE(is_op(graph.node(1), "Mul"));
  CHECK(graph.node(2).input(0) == graph.node(1).output(0));
  CHECK(constant(graph, graph.node(1).input(1)) == std::vector<float>{1, 32});
  CHECK(constant(graph, "w") == std::vector<float>{32, 64, 3, 4});  // 96 / 32, 128 / 32
  CHECK(constant(graph, "v") == std::vector<float>{1, 2});
  // A channel that was empty may have values later, so its factor stays limited.
  CHECK(balance_channels(graph, {{"b", {1, 0}}}) == 1);
  CHECK(constant(graph, "v") == std::vector<float>{1, 2.0f / 256});
}

TEST_CASE("quantize: a corrected bias takes the rounding of the weights from the mean") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,2,1,1] x) => (float[1,1,1,1] y) {
    y = Conv(x, w, b)
  })");
  give(graph, "w", {1, 2, 1, 1}, 127, -126.6f);  // 127 and 0.4; 0.4 rounds to 0
  give(graph, "b", {1}, 1, 0);
  QdqForm form;
  form.means = {{"x", {7, 10}}};
  CHECK(correct_biases(graph, form) == 1);
  CHECK(constant(graph, graph.node(0).input(2))[0] == doctest::Approx(1 + 0.4 * 10));
  form.floats = {0};
  CHECK(correct_biases(graph, form) == 0);
}

TEST_CASE("quantize: biases lose what rounding the input adds as well") {
  onnx::GraphProto graph = graph_of(R"(g (float[1,2,1,1] x) => (float[1,1,1,1] y) {
    y = Conv(x, w, b)
  })");
  give(graph, "w", {1, 2, 1, 1}, 127, 0);
  give(graph, "b", {1}, 1, 0);
  QdqForm form;
  form.means = {{"x", {0.25, 3}}};
  form.rounded_means = {{"x", {0.5, 3}}};
  CHECK(correct_biases(graph, form) == 1);
  CHECK(constant(graph, graph.node(0).input(2))[0] == doctest::Approx(1 - 127 * 0.25));
}

TEST_CASE("quantize: scales cover zero, and weights keep biases within 32 bits") {
  const ScaleAndZero shifted = scale_of({1, 5.1}, false);
  CHECK(shifted.zero == 0);
  CHECK(shifted.scale == doctest::Approx(0.02));
  CHECK(scale_of({-1, 1.55}, false).zero == 100);
  CHECK(scale_of({-1, 1.55}, true).zero == -28);
  CHECK(scale_of({0, 0}, false).scale == 1);

  onnx::TensorProto tensor;
  for (const int dim : {2, 2}) tensor.add_dims(dim);
  const IntegerWeights rounded = round_weights({127, -63, 0, 0}, AlongAxis(tensor, 0), 8, {0, 0.5});
  CHECK(rounded.values == std::vector<int8_t>{127, -63, 0, 0});
  CHECK(rounded.scales == std::vector<float>{1, 0.5});
}

}  // namespace
}  // namespace tw::onnx_quantize
