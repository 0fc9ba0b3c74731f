// Importers of convolutions, products, normalizations, reductions and data movement against known
// values.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

Tensor iota(std::vector<int64_t> shape) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return floats(std::move(shape), values);
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("Conv with bias, groups and auto_pad") {
  check_close(run_graph("g (float[1,1,3,3] x) => (float[1,1,2,2] y) <float[1,1,2,2] w = {1, 0, 0, "
                        "1}, float[1] b = {10}> { y = Conv(x, w, b) }",
                        {iota({1, 1, 3, 3})}),
              {14, 16, 20, 22});
  check_close(run_graph("g (float[1,2,1,2] x) => (float[1,2,1,2] y) <float[2,1,1,1] w = {2, 3}> { "
                        "y = Conv<group = 2>(x, w) }",
                        {iota({1, 2, 1, 2})}),
              {0, 2, 6, 9});
  // 1-D, stride 2 over 4 elements: SAME_UPPER adds one pad behind them, SAME_LOWER one in front.
  const std::string conv =
      "g (float[1,1,4] x) => (float[1,1,2] y) <float[1,1,3] w = {1, 10, 100}> { y = Conv<strides = "
      "[2], auto_pad = ";
  check_close(run_graph(conv + "\"SAME_UPPER\">(x, w) }", {floats({1, 1, 4}, {1, 2, 3, 4})}),
              {321, 43});
  check_close(run_graph(conv + "\"SAME_LOWER\">(x, w) }", {floats({1, 1, 4}, {1, 2, 3, 4})}),
              {210, 432});
  check_close(run_graph("g (float[1,1,4] x) => (float[1,1,2] y) <float[1,1,2] w = {1, 10}> { y = "
                        "Conv<dilations = [2], auto_pad = \"VALID\">(x, w) }",
                        {floats({1, 1, 4}, {1, 2, 3, 4})}),
              {31, 42});
}

TEST_CASE("ConvTranspose: strides, output_padding, output_shape") {
  const std::vector<Tensor> in = {floats({1, 1, 2}, {1, 2})};
  const std::string head =
      "g (float[1,1,2] x) => (float[1,1,N] y) <float[1,1,3] w = {1, 10, 100}> { y = "
      "ConvTranspose<strides = [2]";
  check_close(run_graph(head + ">(x, w) }", in), {1, 10, 102, 20, 200});
  check_close(run_graph(head + ", output_padding = [1]>(x, w) }", in), {1, 10, 102, 20, 200, 0});
  check_close(run_graph(head + ", pads = [1, 1]>(x, w) }", in), {10, 102, 20});
  check_close(run_graph(head + ", output_shape = [4]>(x, w) }", in), {10, 102, 20, 200});
  check_close(run_graph(head + ", auto_pad = \"SAME_UPPER\">(x, w) }", in), {1, 10, 102, 20});
}

// The RNN of most cases sums: h = x + h.
TEST_CASE("recurrent networks: directions, lengths, states, layout, activations") {
  const std::string weights = " <float[1,1,1] w = {1}, float[1,1,1] r = {1}> { ",
                    two = " <float[2,1,1] w = {1, 1}, float[2,1,1] r = {1, 10}> { ";
  const std::string sum = "hidden_size = 1, activations = [\"Affine\"]";
  const std::vector<Tensor> in = {floats({3, 1, 1}, {1, 2, 3})};
  check_close(run_graph("g (float[3,1,1] x) => (float[3,1,1,1] y)" + weights + "y = RNN<" + sum +
                            ">(x, w, r) }",
                        in),
              {1, 3, 6});
  check_close(run_graph("g (float[3,1,1] x) => (float[3,1,1,1] y)" + weights + "y = RNN<" + sum +
                            ", direction = \"reverse\">(x, w, r) }",
                        in),
              {6, 5, 3});
  check_close(run_graph("g (float[3,1,1] x) => (float[3,2,1,1] y)" + two +
                            "y = RNN<hidden_size = 1, direction = \"bidirectional\", activations = "
                            "[\"Affine\", \"Relu\"]>(x, w, r) }",
                        in),
              {1, 321, 3, 32, 6, 3});
  check_close(run_graph("g (float[3,1,1] x) => (float[1,1,1] h)" + weights + "y, h = RNN<" + sum +
                            ">(x, w, r) }",
                        in),
              {6});
  // Two sequences, of lengths 3 and 2, with first states 10 and 20.
  const std::string lengths =
      " <float[1,1,1] w = {1}, float[1,1,1] r = {1}, int32[2] n = {3, 2}, float[1,2,1] h0 = {10, "
      "20}> { ";
  const std::vector<Tensor> pair = {floats({3, 2, 1}, {1, 1, 2, 2, 3, 3})};
  check_close(run_graph("g (float[3,2,1] x) => (float[3,1,2,1] y)" + lengths + "y = RNN<" + sum +
                            ">(x, w, r, , n, h0) }",
                        pair),
              {11, 21, 13, 23, 16, 0});
  check_close(run_graph("g (float[3,2,1] x) => (float[1,2,1] h)" + lengths + "y, h = RNN<" + sum +
                            ", direction = \"reverse\">(x, w, r, , n, h0) }",
                        pair),
              {16, 23});
  const std::string batch_first =
      " <float[1,1,1] w = {1}, float[1,1,1] r = {1}, float[2,1,1] h0 = {10, 20}> { ";
  check_close(run_graph("g (float[2,3,1] x) => (float[2,3,1,1] y)" + batch_first + "y = RNN<" +
                            sum + ", layout = 1>(x, w, r, , , h0) }",
                        {floats({2, 3, 1}, {1, 2, 3, 1, 2, 3})}),
              {11, 13, 16, 21, 23, 26});
  // Default activations, by hand: all gates of LSTM and GRU are 1/2, and the candidate is tanh(x).
  check_close(
      run_graph("g (float[1,1,1] x) => (float[1,1,1] c) <float[1,4,1] w = {0, 0, 0, 1}, "
                "float[1,4,1] r = {0, 0, 0, 0}> { y, h, c = LSTM<hidden_size = 1>(x, w, r) }",
                {floats({1, 1, 1}, {2})}),
      {0.5 * std::tanh(2.0)});
  check_close(run_graph("g (float[1,1,1] x) => (float[1,1,1,1] y) <float[1,3,1] w = {0, 0, 1}, "
                        "float[1,3,1] r = {0, 0, 0}> { y = GRU<hidden_size = 1>(x, w, r) }",
                        {floats({1, 1, 1}, {2})}),
              {0.5 * std::tanh(2.0)});
}

TEST_CASE("pooling") {
  const std::vector<Tensor> in = {iota({1, 1, 4, 4})};
  check_close(run_graph("g (float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape = "
                        "[2, 2], strides = [2, 2]>(x) }",
                        in),
              {5, 7, 13, 15});
  check_close(run_graph("g (float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape = "
                        "[3, 3], strides = [2, 2], ceil_mode = 1>(x) }",
                        in),
              {10, 11, 14, 15});
  check_close(
      run_graph("g (float[1,1,4,4] x) => (float[1,1,1,1] y) { y = GlobalAveragePool(x) }", in),
      {7.5});
  check_close(run_graph("g (float[1,1,4,4] x) => (float[1,1,1,1] y) { y = GlobalMaxPool(x) }", in),
              {15});
  const std::string average =
      "g (float[1,1,2] x) => (float[1,1,3] y) { y = AveragePool<kernel_shape = [2], pads = [1, 1]";
  check_close(run_graph(average + ">(x) }", {floats({1, 1, 2}, {2, 4})}), {2, 3, 4});
  check_close(run_graph(average + ", count_include_pad = 1>(x) }", {floats({1, 1, 2}, {2, 4})}),
              {1, 3, 2});
  check_close(
      run_graph("g (float[1,1,2] x) => (float[1,1,1] y) { y = LpPool<kernel_shape = [2]>(x) }",
                {floats({1, 1, 2}, {3, -4})}),
      {5});
}

TEST_CASE("Gemm and MatMul") {
  const std::vector<Tensor> in = {iota({2, 3}), iota({2, 3})};
  check_close(run_graph("g (float[2,3] a, float[2,3] b) => (float[2,2] y) <float[2] c = {1, 2}> { "
                        "y = Gemm<transB = 1, alpha = 2.0, beta = 3.0>(a, b, c) }",
                        in),
              {13, 34, 31, 106});
  check_close(
      run_graph("g (float[2,3] a, float[2,3] b) => (float[3,3] y) { y = Gemm<transA = 1>(a, b) }",
                in),
      {9, 12, 15, 12, 17, 22, 15, 22, 29});
  check_close(run_graph("g (float[3] a, float[3] b) => (float y) { y = MatMul(a, b) }",
                        {iota({3}), iota({3})}),
              {5});
  check_close(run_graph("g (float[2] a, float[2,2,3] b) => (float[2,3] y) { y = MatMul(a, b) }",
                        {iota({2}), iota({2, 2, 3})}),
              {3, 4, 5, 9, 10, 11});
  check_close(run_graph("g (float[2,2,3] a, float[3] b) => (float[2,2] y) { y = MatMul(a, b) }",
                        {iota({2, 2, 3}), iota({3})}),
              {5, 14, 23, 32});
}

TEST_CASE("normalizations") {
  check_close(run_graph("g (float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {2, 1}, float[2] b = "
                        "{0, 5}, float[2] m = {1, 2}, float[2] v = {4, 1}>"
                        "{ y = BatchNormalization<epsilon = 0.0>(x, s, b, m, v) }",
                        {iota({1, 2, 2})}, 15),
              {-1, 0, 5, 6});
  check_close(run_graph("g (float[2,2] x) => (float[2,2] y) <float[2] s = {2, 2}, float[2] b = {1, "
                        "1}> { y = LayerNormalization<epsilon = 0.0>(x, s, b) }",
                        {floats({2, 2}, {0, 2, 5, 1})}),
              {-1, 3, 3, -1});
  check_close(run_graph("g (float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {2, 1}, float[2] b = "
                        "{1, 0}> { y = InstanceNormalization<epsilon = 0.0>(x, s, b) }",
                        {floats({1, 2, 2}, {0, 2, 5, 1})}),
              {-1, 3, 1, -1});
  check_close(
      run_graph("g (float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {2, 1}, float[2] b = {1, 0}> "
                "{ y = GroupNormalization<epsilon = 0.0, num_groups = 2>(x, s, b) }",
                {floats({1, 2, 2}, {0, 2, 5, 1})}, 21),
      {-1, 3, 1, -1});
  check_close(run_graph("g (float[1,3,1,1] x) => (float[1,3,1,1] y) { y = LRN<size = 3, alpha = "
                        "3.0, beta = 1.0>(x) }",
                        {floats({1, 3, 1, 1}, {1, 2, 3})}),
              {1.0 / 6, 2.0 / 15, 3.0 / 14});
  check_close(run_graph("g (float[1,2] x) => (float[1,2] y) { y = LpNormalization(x) }",
                        {floats({1, 2}, {3, -4})}),
              {0.6, -0.8});
}

TEST_CASE("softmax by axis and as a matrix") {
  const double e = std::exp(1.0), p = e / (1 + e), q = 1 / (1 + e);
  check_close(run_graph("g (float[2,2] x) => (float[2,2] y) { y = Softmax<axis = 0>(x) }",
                        {floats({2, 2}, {0, 1, 1, 0})}, 13),
              {q, p, p, q});
  check_close(run_graph("g (float[1,2,1] x) => (float[1,2,1] y) { y = Softmax<axis = 1>(x) }",
                        {floats({1, 2, 1}, {0, 1})}, 11),
              {q, p});
  check_close(run_graph("g (float[1,2,2] x) => (float[1,2,2] y) { y = Softmax(x) }",
                        {floats({1, 2, 2}, {3, 3, 3, 3})}, 11),
              {0.25, 0.25, 0.25, 0.25});
  check_close(run_graph("g (float[2] x) => (float[2] y) { y = LogSoftmax<axis = 0>(x) }",
                        {floats({2}, {0, 1})}, 13),
              {std::log(q), std::log(p)});
  check_close(run_graph("g (float[2,3] x) => (float[2,3] y) { y = Hardmax(x) }",
                        {floats({2, 3}, {1, 3, 3, 2, 1, 0})}, 13),
              {0, 1, 0, 1, 0, 0});
}

TEST_CASE("reductions: axes as attribute or input, none, keepdims") {
  const std::vector<Tensor> in = {floats({2, 2}, {1, -2, 3, 4})};
  const auto run = [&](const std::string& node, int opset) {
    return run_graph(
        "g (float[2,2] x) => (float[M] y) <int64[1] a = {1}, int64[0] e = {}> { y = " + node + " }",
        in, opset);
  };
  check_close(run("ReduceSum(x, a)", 13), {-1, 7});
  check_close(run("ReduceSum<axes = [-1], keepdims = 0>(x)", 11), {-1, 7});
  check_close(run("ReduceSum(x)", 13), {6});
  check_close(run("ReduceSum<noop_with_empty_axes = 1>(x, e)", 13), {1, -2, 3, 4});
  check_close(run("ReduceMean<axes = [0]>(x)", 13), {2, 1});
  check_close(run("ReduceMax(x, a)", 18), {1, 4});
  check_close(run("ReduceMin(x, a)", 18), {-2, 3});
  check_close(run("ReduceProd(x, a)", 18), {-2, 12});
  check_close(run("ReduceL1(x, a)", 18), {3, 7});
  check_close(run("ReduceL2(x, a)", 18), {std::sqrt(5.0), 5});
  check_close(run("ReduceSumSquare(x, a)", 18), {5, 25});
  check_close(run("ReduceLogSumExp(x, a)", 18),
              {std::log(std::exp(1.0) + std::exp(-2.0)), std::log(std::exp(3.0) + std::exp(4.0))});
  check_close(run("ReduceLogSum<axes = [0]>(x)", 13), {std::log(4.0), std::log(2.0)});
  check_close(
      run_graph("g (float[2,2] x) => (int64[2] y) { y = ArgMax<axis = 1, keepdims = 0>(x) }", in),
      {0, 1});
  check_close(
      run_graph("g (float[2,2] x) => (int64[2] y) { y = ArgMin<axis = 0, keepdims = 0>(x) }", in),
      {0, 0});
}

TEST_CASE("shapes: Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Size") {
  const std::vector<Tensor> in = {iota({2, 1, 3})};
  const auto shape_of = [](const std::string& graph, int opset) {
    Expected<Model> model = import_bytes(graph_bytes(graph, opset));
    if (!model) FAIL(error_text(model.takeError()));
    return to_string(model->graph.value(model->graph.outputs()[0].value).type);
  };
  const std::string head =
      "g (float[2,1,3] x) => (float[M] y) <int64[3] s = {0, 3, -1}, int64[1] a = {1}, int64[2] b = "
      "{0, 4}, int64[3] r = {1, 2, 1}> { y = ";
  CHECK(shape_of(head + "Reshape(x, s) }", 13) == "f32[2, 3, 1]");
  CHECK(shape_of(head + "Flatten(x) }", 13) == "f32[2, 3]");
  CHECK(shape_of(head + "Flatten<axis = 0>(x) }", 13) == "f32[1, 6]");
  CHECK(shape_of(head + "Squeeze(x, a) }", 13) == "f32[2, 3]");
  CHECK(shape_of(head + "Squeeze(x) }", 13) == "f32[2, 3]");
  CHECK(shape_of(head + "Squeeze<axes = [-2]>(x) }", 11) == "f32[2, 3]");
  CHECK(shape_of(head + "Unsqueeze(x, b) }", 13) == "f32[1, 2, 1, 3, 1]");
  check_close(run_graph(head + "Tile(x, r) }", in), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  check_close(run_graph(head + "Expand(x, r) }", in), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  check_close(run_graph("g (float[2,1,3] x) => (int64 y) { y = Size(x) }", in), {6});
  check_close(
      run_graph("g (float[2,1,3] x) => (int64[2] y) { y = Shape<start = 0, end = -1>(x) }", in, 15),
      {2, 1});
}

TEST_CASE("Slice clamps, steps and turns round") {
  const std::vector<Tensor> in = {iota({5})};
  const auto run = [&](const std::string& values) {
    return run_graph("g (float[5] x) => (float[M] y) <int64[1] s = {" + values +
                         ", int64[1] a = {0}, int64[1] k = {1}> { y = Slice(x, s, e, a, k) }",
                     in);
  };
  check_close(run("1}, int64[1] e = {3}"), {1, 2});
  check_close(run("-2}, int64[1] e = {9223372036854775807}"), {3, 4});
  check_close(run("-100}, int64[1] e = {-3}"), {0, 1});
  CHECK(run("4}, int64[1] e = {2}").empty());
  const auto back = [&](const std::string& values) {
    return run_graph("g (float[5] x) => (float[M] y) <int64[1] s = {" + values +
                         ", int64[1] a = {0}, int64[1] k = {-2}> { y = Slice(x, s, e, a, k) }",
                     in);
  };
  check_close(back("100}, int64[1] e = {-100}"), {4, 2, 0});
  check_close(back("-2}, int64[1] e = {0}"), {3, 1});
  check_close(
      run_graph("g (float[5] x) => (float[M] y) { y = Slice<starts = [1], ends = [-1]>(x) }", in,
                9),
      {1, 2, 3});
}

TEST_CASE("Transpose, Concat, Split, Gather") {
  const std::vector<Tensor> in = {iota({2, 3})};
  check_close(run_graph("g (float[2,3] x) => (float[3,2] y) { y = Transpose(x) }", in),
              {0, 3, 1, 4, 2, 5});
  check_close(run_graph("g (float[2,3] x) => (float[4,3] y) { y = Concat<axis = 0>(x, x) }", in),
              {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  check_close(
      run_graph("g (float[2,3] x) => (float[2,1] y) { a, y, c = Split<axis = 1>(x) }", in, 13),
      {1, 4});
  check_close(
      run_graph("g (float[2,3] x) => (float[2,1] y) { a, y = Split<axis = 1, num_outputs = 2>(x) }",
                in, 18),
      {2, 5});
  check_close(
      run_graph("g (float[2,3] x) => (float[2,2] y) { a, y = Split<axis = 1, split = [1, 2]>(x) }",
                in, 11),
      {1, 2, 4, 5});
  check_close(run_graph("g (float[2,3] x) => (float[2,2] y) <int64[2] s = {1, 2}> { a, y = "
                        "Split<axis = 1>(x, s) }",
                        in, 13),
              {1, 2, 4, 5});
  check_close(run_graph("g (float[2,3] x) => (float[2,2] y) <int64[2] i = {-1, 0}> { y = "
                        "Gather<axis = 1>(x, i) }",
                        in),
              {2, 0, 5, 3});
}

TEST_CASE("more axes than the tensor has, which only a run knows") {
  for (const char* node : {"ReduceMean<keepdims = 0>(x, a)", "Squeeze(x, a)"}) {
    const std::string text = std::string("g (float[1, N] x, int64[3] a) => (float[M] y) { y = ") +
                             node + " }";
    CHECK(error_of(graph_bytes(text, 18)).find("3 axes of a tensor of rank 2") !=
          std::string::npos);
  }
}

TEST_CASE("Pad: modes, axes, negative") {
  const std::vector<Tensor> in = {iota({1, 3})};
  const auto run = [&](const std::string& node) {
    return run_graph(
        "g (float[1,3] x) => (float[M,N] y) <int64[4] p = {0, 1, 0, 2}, int64[2] q = {1, 2}, "
        "int64[1] a = {-1}, int64[4] m = {0, -1, 0, 1}, float v = {9}> { y = " +
            node + " }",
        in, 18);
  };
  check_close(run("Pad(x, p)"), {0, 0, 1, 2, 0, 0});
  check_close(run("Pad(x, p, v)"), {9, 0, 1, 2, 9, 9});
  check_close(run("Pad<mode = \"edge\">(x, p)"), {0, 0, 1, 2, 2, 2});
  check_close(run("Pad<mode = \"reflect\">(x, p)"), {1, 0, 1, 2, 1, 0});
  check_close(run("Pad(x, q, , a)"), {0, 0, 1, 2, 0, 0});
  check_close(run("Pad(x, m)"), {1, 2, 0});
  check_close(
      run_graph(
          "g (float[1,3] x) => (float[M,N] y) { y = Pad<pads = [0, 1, 0, 0], value = 4.0>(x) }", in,
          2),
      {4, 0, 1, 2});
}

TEST_CASE("Resize and Upsample") {
  const std::vector<Tensor> in = {floats({1, 1, 2}, {1, 3})};
  const std::string head =
      "g (float[1,1,2] x) => (float[M,N,K] y) <float[3] s = {1, 1, 2}, int64[3] z = {1, 1, 4}, "
      "float[0] r = {}> { y = ";
  check_close(run_graph(head + "Resize<coordinate_transformation_mode = \"asymmetric\", "
                               "nearest_mode = \"floor\">(x, , s) }",
                        in, 13),
              {1, 1, 3, 3});
  check_close(run_graph(head + "Resize<mode = \"linear\">(x, r, , z) }", in, 13), {1, 1.5, 2.5, 3});
  check_close(run_graph(head + "Resize(x, s) }", in, 10), {1, 1, 3, 3});
  check_close(run_graph(head + "Upsample(x, s) }", in, 9), {1, 1, 3, 3});
  check_close(run_graph(head + "Upsample<scales = [1.0, 1.0, 2.0]>(x) }", in, 7), {1, 1, 3, 3});
}

TEST_CASE("DepthToSpace, SpaceToDepth") {
  check_close(
      run_graph("g (float[1,4,1,1] x) => (float[1,1,2,2] y) { y = DepthToSpace<blocksize = 2>(x) }",
                {iota({1, 4, 1, 1})}),
      {0, 1, 2, 3});
  check_close(run_graph("g (float[1,8,1,1] x) => (float[1,2,2,2] y) { y = DepthToSpace<blocksize = "
                        "2, mode = \"CRD\">(x) }",
                        {iota({1, 8, 1, 1})}),
              {0, 1, 2, 3, 4, 5, 6, 7});
  check_close(
      run_graph("g (float[1,8,1,1] x) => (float[1,2,2,2] y) { y = DepthToSpace<blocksize = 2>(x) }",
                {iota({1, 8, 1, 1})}),
      {0, 2, 4, 6, 1, 3, 5, 7});
  check_close(
      run_graph("g (float[1,1,2,2] x) => (float[1,4,1,1] y) { y = SpaceToDepth<blocksize = 2>(x) }",
                {iota({1, 1, 2, 2})}),
      {0, 1, 2, 3});
}

TEST_CASE("constants, ranges, masks") {
  const std::vector<Tensor> in = {iota({2, 2})};
  check_close(
      run_graph("g (float[2,2] x) => (float[2] y) { y = Constant<value_floats = [1.5, 2.5]>() }",
                in),
      {1.5, 2.5});
  check_close(run_graph("g (float[2,2] x) => (float[2,2] y) { c = Constant<value = float[2] {10, "
                        "20}>() y = Add(x, c) }",
                        in),
              {10, 21, 12, 23});
  check_close(run_graph("g (float[2,2] x) => (float[2,2] y) { s = Shape(x) c = "
                        "ConstantOfShape<value = float[1] {7}>(s) y = Add(x, c) }",
                        in),
              {7, 8, 9, 10});
  check_close(run_graph("g (float[2,2] x) => (int64[3] y) <int64 a = {1}, int64 b = {6}, int64 d = "
                        "{2}> { y = Range(a, b, d) }",
                        in),
              {1, 3, 5});
  check_close(run_graph("g (float[2,2] x) => (float[2,2] y) { y = Trilu<upper = 0>(x) }", in),
              {0, 0, 2, 3});
  check_close(
      run_graph("g (float[2,2] x) => (float[2,2] y) <int64 k = {1}> { y = Trilu(x, k) }", in),
      {0, 1, 0, 0});
  check_close(run_graph("g (float[2,2] x) => (float[2,2] y) { y = EyeLike<k = 1>(x) }", in),
              {0, 1, 0, 0});
  check_close(run_graph("g (int64[2] i) => (float[2,3] y) <int64 d = {3}, float[2] v = {0, 5}> { y "
                        "= OneHot(i, d, v) }",
                        {ints({2}, {1, -1})}),
              {0, 5, 0, 0, 0, 5});
}

TEST_CASE("operators without an importer are expanded by their function bodies") {
  check_close(run_graph("g (float[1,2] x) => (float[1,2] y) <float[2] s = {1, 2}> { y = "
                        "RMSNormalization<epsilon = 0.0>(x, s) }",
                        {floats({1, 2}, {3, 4})}, 23),
              {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
  check_close(
      run_graph(
          "g (float[2,2] x) => (float[2,2] y) { y = MeanVarianceNormalization<axes = [1]>(x) }",
          {floats({2, 2}, {0, 2, 1, 5})}),
      {-1, 1, -1, 1});
}

TEST_CASE("old models are converted") {
  // version 1 of Add aligns shapes by attributes
  check_close(run_graph("g (float[2,2] x, float[2] b) => (float[2,2] y) { y = Add<broadcast = 1, "
                        "axis = 0>(x, b) }",
                        {iota({2, 2}), iota({2})}, 6),
              {0, 1, 3, 4});
}

TEST_CASE("model-local functions are inlined") {
  const std::string model = onnx_bytes(R"(<ir_version: 8, opset_import: ["": 17, "mine": 1]>
    g (float[2] x) => (float[2] y) { t = mine.twice(x) y = mine.twice(t) }
    <opset_import: ["": 17], domain: "mine"> twice (a) => (b) { b = Add(a, a) })");
  check_close(run_model(model, {floats({2}, {1, 3})}).front(), {4, 12});
}

}  // namespace
}  // namespace tw::test
