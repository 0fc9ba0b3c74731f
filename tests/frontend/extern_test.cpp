// Importers of operators that functions of the runtime library compute: versions, folding,
// data-dependent sizes, and random numbers by their statistics.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

using List = std::vector<double>;

TEST_CASE("TopK: k as an attribute and as an input") {
  const Tensor x = floats({2, 4}, {1, 5, 3, 5, -1, -2, -3, -4});
  const auto check = [&](const std::string& graph, int opset, const List& values,
                         const List& places) {
    const auto made = run_model(graph_bytes(graph, opset), {x});
    CHECK(made[0] == values);
    CHECK(made[1] == places);
  };
  check("g (float[2,4] x) => (float[2,2] v, int64[2,2] i) { v, i = TopK<k = 2>(x) }", 9,
        {5, 5, -1, -2}, {1, 3, 0, 1});
  check("g (float[2,4] x) => (float[2,2] v, int64[2,2] i) <int64[1] k = {2}> { v, i = TopK(x, k) }",
        10, {5, 5, -1, -2}, {1, 3, 0, 1});
  check(
      "g (float[2,4] x) => (float[1,4] v, int64[1,4] i) <int64[1] k = {1}> { v, i = TopK<axis = 0, "
      "largest = 0>(x, k) }",
      17, {-1, -2, -3, -4}, {1, 1, 1, 1});
  CHECK(error_of(graph_bytes("g (float[2,4] x) => (float[2,9] v, int64[2,9] i) <int64[1] k = {9}> "
                             "{ v, i = TopK(x, k) }"))
            .find("k is 9") != std::string::npos);
}

TEST_CASE("TopK of a free dimension, k in terms of it") {
  const auto made = run_model(
      graph_bytes("g (float[n] x) => (float[m] v, int64[m] i) { s = Shape(x) v, i = TopK(x, s) }"),
      {floats({3}, {2, 9, 4})});
  CHECK(made[0] == List{9, 4, 2});
}

TEST_CASE("Scatter, ScatterElements, ScatterND") {
  const Tensor x = floats({3}, {1, 2, 3});
  CHECK(run_graph("g (float[3] x) => (float[3] y) <int64[2] i = {2, 0}, float[2] u = {8, 9}> { y = "
                  "Scatter(x, i, u) }",
                  {x}, 10) == List{9, 2, 8});
  CHECK(run_graph("g (float[3] x) => (float[3] y) <int64[2] i = {2, 2}, float[2] u = {8, 9}> { y = "
                  "ScatterElements<reduction = \"add\">(x, i, u) }",
                  {x}, 18) == List{1, 2, 20});
  CHECK(run_graph("g (float[3] x) => (float[3] y) <int64[2,1] i = {2, -3}, float[2] u = {8, 9}> { "
                  "y = ScatterND(x, i, u) }",
                  {x}, 13) == List{9, 2, 8});
}

TEST_CASE("sizes that the data decide while the model runs") {
  CHECK(run_graph("g (float[2,3] x) => (int64[2,m] y) { y = NonZero(x) }",
                  {floats({2, 3}, {0, 1, 0, 2, 0, 3})}) == List{0, 1, 1, 1, 0, 2});
  CHECK(run_graph("g (float[4] x) => (float[m] y) { y = Unique(x) }",
                  {floats({4}, {2, 1, 2, 1})}) == List{1, 2});
  CHECK(run_graph("g (float[n,2] x, bool[n] c) => (float[m,2] y) { y = Compress<axis = 0>(x, c) }",
                  {floats({2, 2}, {1, 2, 3, 4}), [] {
                     Tensor c = Tensor::zeros(DType::boolean, {2});
                     c.set_int(1, 1);
                     return c;
                   }()}) == List{3, 4});
  CHECK(
      run_model(graph_bytes(
                    "g (float[5] x, int64[1] k) => (float[m] v, int64[m] i) { v, i = TopK(x, k) }"),
                {floats({5}, {3, 9, 1, 7, 5}), ints({1}, {2})})[0] == List{9, 7});
  CHECK(run_graph("g (float[1,2,4] b, float[1,1,2] s, int64[1] m) => (int64[r,3] y) { y = "
                  "NonMaxSuppression(b, s, m) }",
                  {floats({1, 2, 4}, {0, 0, 1, 1, 5, 5, 6, 6}), floats({1, 1, 2}, {0.25f, 0.5f}),
                   ints({1}, {1})}) == List{0, 0, 1});
}

TEST_CASE("sizes that the data decide fold where the data are constants") {
  CHECK(run_graph("g (int64[2,2] x) => (int64[2,2] y) <float[4] c = {0, 3, 0, 1}> { n = NonZero(c) "
                  "y = Add(x, n) }",
                  {ints({2, 2}, {0, 0, 10, 10})}, 17) == List{1, 3, 11, 13});
  const auto made = run_model(
      graph_bytes("g (int64[3] x) => (int64[3] y, int64[3] f, int64[5] v, int64[3] c) <int64[5] k "
                  "= {4, 2, 4, 4, 1}> { u, f, v, c = Unique(k) y = Add(x, u) }"),
      {ints({3}, {0, 0, 0})});
  CHECK(made[0] == List{1, 2, 4});
  CHECK(made[1] == List{4, 1, 0});
  CHECK(made[2] == List{2, 1, 2, 2, 0});
  CHECK(made[3] == List{1, 1, 3});
}

TEST_CASE("a target that no leaf names is 0, whatever the weights are joined by") {
  for (const std::string join : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    const std::string model =
        "<ir_version: 8, opset_import: [\"\": 17, \"ai.onnx.ml\": 3]> g (float[1,1] x) => "
        "(float[1,2] "
        "y) { y = ai.onnx.ml.TreeEnsembleRegressor<n_targets = 2, aggregate_function = \"" +
        join +
        "\", nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], nodes_values = "
        "[0.0], "
        "nodes_modes = [\"LEAF\"], nodes_truenodeids = [0], nodes_falsenodeids = [0], "
        "target_treeids "
        "= [0], target_nodeids = [0], target_ids = [1], target_weights = [-2.5]>(x) }";
    CAPTURE(join);
    CHECK(run_model(onnx_bytes(model), {floats({1, 1}, {0})})[0] == List{0, -2.5});
  }
}

TEST_CASE("MaxUnpool with and without an output shape; Det") {
  const Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), at = ints({1, 1, 2, 2}, {5, 7, 13, 15});
  const std::string head = "g (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[a,b,c,d] y) ",
                    unpool = "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>";
  CHECK(run_graph(head + "{ " + unpool + "(x, i) }", {x, at}) ==
        List{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4});
  CHECK(run_graph(head + "<int64[4] s = {1, 1, 5, 4}> { " + unpool + "(x, i, s) }", {x, at}) ==
        List{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0});
  CHECK(run_graph("g (float[2,2,2] x) => (float[2] y) { y = Det(x) }",
                  {floats({2, 2, 2}, {0, 2, 3, 4, 1, 2, 3, 4})}) == List{-6, -2});
}

struct Moments {
  double mean = 0, variance = 0, low = 1e9, high = -1e9;
};
Moments moments(const List& values) {
  Moments m;
  for (double v : values)
    m.mean += v / static_cast<double>(values.size()), m.low = std::min(m.low, v),
                                                      m.high = std::max(m.high, v);
  for (double v : values)
    m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  return m;
}

TEST_CASE("random tensors have their distribution's moments") {
  const List u = run_graph(
      "g () => (float[100,100] y) { y = RandomUniform<shape = [100, 100], low = -2.0, high = 4.0, "
      "seed = 3.0>() }",
      {});
  const Moments uniform = moments(u);
  CHECK(uniform.mean == doctest::Approx(1).epsilon(0.06));
  CHECK(uniform.variance == doctest::Approx(3).epsilon(0.05));
  CHECK(uniform.low > -2);
  CHECK(uniform.high < 4);
  const Moments normal = moments(
      run_graph("g (float[100,100] x) => (float[100,100] y) { y = RandomNormalLike<mean = 5.0, "
                "scale = 2.0>(x) }",
                {Tensor::zeros(DType::f32, {100, 100})}));
  CHECK(normal.mean == doctest::Approx(5).epsilon(0.02));
  CHECK(normal.variance == doctest::Approx(4).epsilon(0.06));
  CHECK(normal.high > 5 + 2 * 3);
  CHECK(u != run_graph("g () => (float[100,100] y) { y = RandomUniform<shape = [100, 100], low = "
                       "-2.0, high = 4.0, seed = 4.0>() }",
                       {}));
  List given(10000, 0.3);
  const Tensor p = floats({10000}, std::vector<float>(given.begin(), given.end()));
  CHECK(
      moments(run_graph("g (float[10000] p) => (float[10000] y) { y = Bernoulli(p) }", {p})).mean ==
      doctest::Approx(0.3).epsilon(0.06));
  const List classes = run_graph(
      "g (float[1,3] x) => (int32[1,10000] y) { y = Multinomial<sample_size = 10000>(x) }",
      {floats({1, 3}, {std::log(0.5f), std::log(0.2f), std::log(0.3f)})});
  double counts[3] = {};
  for (double c : classes) ++counts[static_cast<int>(c)];
  CHECK(counts[0] / 10000 == doctest::Approx(0.5).epsilon(0.04));
  CHECK(counts[1] / 10000 == doctest::Approx(0.2).epsilon(0.08));
}

TEST_CASE("Dropout in training zeroes its share and keeps the mean") {
  const Tensor x = floats({10000}, std::vector<float>(10000, 1.0f));
  const List y = run_graph(
      "g (float[10000] x) => (float[10000] y) <float r = {0.25}, bool t = {1}> { y = Dropout(x, r, "
      "t) }",
      {x});
  CHECK(moments(y).mean == doctest::Approx(1).epsilon(0.03));
  CHECK(moments(y).high == doctest::Approx(4.0 / 3));
  CHECK(
      run_graph(
          "g (float[3] x) => (float[3] y) <float r = {0.0}, bool t = {1}> { y = Dropout(x, r, t) }",
          {floats({3}, {1, 2, 3})}) == List{1, 2, 3});
}

}  // namespace
}  // namespace tw::test
