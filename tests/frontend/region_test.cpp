// If, Loop and Scan that stay in the graph, as nodes that run regions.
#include <doctest/doctest.h>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

using Lists = std::vector<std::vector<double>>;

size_t count_of(const Graph& graph, const std::string& op) {
  size_t count = 0;
  for (NodeId id : graph.order()) count += op_info(graph.node(id).attrs).name == op;
  return count;
}

Tensor truth(bool value) {
  Tensor t = Tensor::zeros(DType::boolean, {});
  t.set_int(0, value);
  return t;
}

TEST_CASE("a condition that is computed from the data runs one of two regions") {
  const std::string bytes = graph_bytes(
      R"(g (float[2] x, bool c) => (float[2] y, float[2] z) <float[2] w = {10, 20}> {
      d = Add(x, w)
      y, z = If (c) <then_branch = a () => (float[2] t, float[2] u) { t = Mul(d, w) u = Identity(x) }, else_branch = b () => (float[2] e, float[2] f)
        { e = Sub(x, w) f = Neg(d) }>
    })");
  Expected<Model> model = import_bytes(bytes);
  REQUIRE(model);
  CHECK(count_of(model->graph, "if") == 1);
  CHECK(run_model(bytes, {floats({2}, {1, 2}), truth(true)}) == Lists{{110, 440}, {1, 2}});
  CHECK(run_model(bytes, {floats({2}, {1, 2}), truth(false)}) == Lists{{-9, -18}, {-11, -22}});
}

TEST_CASE("a choice between lists of as many tensors") {
  CHECK(run_graph(R"(g (float[2] x, bool c) => (float[2] y) <int64 i = {1}> {
      s = If (c) <then_branch = a () => (seq(float[2]) t) { t = SequenceConstruct(x, x) }, else_branch = b () => (seq(float[2]) e)
        { n = Neg(x) e = SequenceConstruct(x, n) }>
      y = SequenceAt(s, i)
    })",
                  {floats({2}, {1, 2}), truth(false)}) == std::vector<double>{-1, -2});
}

TEST_CASE(
    "a long loop stays a loop: carried values, all iterations' results, values around it, a free "
    "extent") {
  const std::string bytes = graph_bytes(
      R"(g (float[N] x) => (float[N] last, float[100] all) <int64 m = {100}> {
      two = Add(x, x)
      last, all = Loop (m, , x) <body = b (int64 i, bool go, float[N] v) => (bool stay, float[N] next, float row)
        { stay = Identity(go) d = Div(v, two) next = Add(d, two) f = Cast<to = 1>(i) s = ReduceSum<keepdims = 0>(x) row = Mul(f, s) }>
    })");
  Expected<Model> model = import_bytes(bytes);
  REQUIRE(model);
  CHECK(count_of(model->graph, "loop") == 1);
  const Lists lists = run_model(bytes, {floats({2}, {1, 2})});
  CHECK(lists[0][0] == doctest::Approx(4));  // the limit of v / 2 + 2
  CHECK(lists[1].size() == 100);
  CHECK(lists[1][99] == 297);
}

TEST_CASE("a loop that its data end") {
  CHECK(run_graph(R"(g (float[1] x, float[1] limit) => (float[1] y) <bool c = {1}> {
      y = Loop ( , c, x) <body = b (int64 i, bool go, float[1] v) => (bool stay, float[1] next) { next = Add(v, v) stay = Less(next, limit) }>
    })",
                  {floats({1}, {3}), floats({1}, {20})}) == std::vector<double>{24});
}

TEST_CASE("a scan of a free length") {
  CHECK(
      run_model(graph_bytes(R"(g (float[2] s, float[T, 2] x) => (float[2] last, float[T, 2] sums) {
      last, sums = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (float[2] a, float[2] v) => (float[2] next, float[2] out)
        { next = Add(a, v) out = Neg(next) }> (s, x)
    })"),
                {floats({2}, {0, 100}), floats({3, 2}, {1, 2, 3, 4, 5, 6})}) ==
      Lists{{9, 112}, {-5, -106, -8, -110, -9, -112}});
}

TEST_CASE("a loop in a branch in a loop") {
  CHECK(run_graph(R"(g (float[1] x, bool c, float[1] limit) => (float[1] y) <int64 m = {30}> {
      y = Loop (m, , x) <body = o (int64 i, bool go, float[1] v) => (bool stay, float[1] next) {
        stay = Identity(go)
        next = If (c) <then_branch = a () => (float[1] t) {
          t = Loop (m, , v) <body = n (int64 j, bool og, float[1] w) => (bool yats, float[1] q) { yats = Identity(og) d = Sub(limit, w) h = Mul(d, x) q = Add(w, h) }>
        }, else_branch = b () => (float[1] e) { e = Identity(v) }>
      }>
    })",
                  {floats({1}, {0.5}), truth(true), floats({1}, {8})})[0] == doctest::Approx(8));
}

TEST_CASE("a choice between sizes") {
  const std::string graph = R"(g (float[2] x, bool c) => (float[a] y) {
      d = If (c) <then_branch = a () => (float[2] t) { t = Neg(x) }, else_branch = b () => (float[4] e) { e = Concat<axis = 0>(x, x) }> y = Add(d, d) })";
  CHECK(run_graph(graph, {floats({2}, {1, 2}), truth(true)}) == std::vector<double>{-2, -4});
  CHECK(run_graph(graph, {floats({2}, {1, 2}), truth(false)}) == std::vector<double>{2, 4, 2, 4});
}

TEST_CASE("a branch beside a value whose sizes come from data and that nobody needs") {
  const std::string bytes = graph_bytes(R"(g (float[1] x, int64[1] i, bool c) => (float[1] y) {
      t = Expand(x, i)
      y = If (c) <then_branch = a () => (float[1] z) { u = Identity(t) z = Neg(x) }, else_branch = b () => (float[1] z) { z = Abs(x) }>
    })");
  Expected<Model> model = import_bytes(bytes);
  REQUIRE(model);
  CHECK(error_text(verify(model->graph)) == "");
  CHECK(run_model(bytes, {floats({1}, {2}), ints({1}, {3}), truth(true)}) == Lists{{-2}});
}

TEST_CASE("data decide how many rows the results have") {
  const std::string body =
      R"(body = b (int64 i, bool go, float[1] v) => (bool stay, float[1] next, float[1] row) { next = Add(v, v) stay = Less(next, limit) row = Neg(v) }> })";
  const Lists expected = {{24}, {-3, -6, -12}};
  const std::vector<Tensor> inputs = {floats({1}, {3}), floats({1}, {20})};
  CHECK(run_model(graph_bytes("g (float[1] x, float[1] limit) => (float[1] y, float[n, 1] r) "
                              "<int64 m = {50}> { y, r = Loop (m, , x) <" +
                              body),
                  inputs) == expected);
  CHECK(run_model(graph_bytes("g (float[1] x, float[1] limit) => (float[1] y, float[n, 1] r) { y, "
                              "r = Loop ( , , x) <" +
                              body),
                  inputs) == expected);
  const std::string counted =
      R"(g (float[1] x, int64 m) => (float[1] y, float[n, 1] r) { y, r = Loop (m, , x) <
      body = b (int64 i, bool go, float[1] v) => (bool stay, float[1] next, float[1] row) { stay = Identity(go) next = Add(v, x) row = Mul(v, x) }> })";
  CHECK(run_model(graph_bytes(counted), {floats({1}, {2}), ints({}, {3})}) ==
        Lists{{8}, {4, 8, 12}});
  CHECK(run_model(graph_bytes(counted), {floats({1}, {2}), ints({}, {0})}) == Lists{{2}, {}});
}

TEST_CASE("a carried value becomes longer with every iteration") {
  const auto run = [](const std::string& loop, const std::vector<Tensor>& inputs) {
    return run_model(
        graph_bytes("g (float[2] x, int64 k) => (float[a] y) <bool c = {1}, int64 m = {50}, "
                    "int64[1] zero = {0}> { y = Loop (" +
                    loop +
                    R"() <body = b (int64 i, bool go, float[d] v) => (bool stay, float[e] w) {
                                   stay = Less(i, k) s = ReduceSum<keepdims = 1>(v, zero) w = Concat<axis = 0>(v, s) }> })"),
        inputs);
  };
  const Tensor x = floats({2}, {1, 2});
  CHECK(run("k, , x", {x, ints({}, {0})}) == Lists{{1, 2}});
  CHECK(run("m, c, x", {x, ints({}, {2})}) == Lists{{1, 2, 3, 6, 12}});  // by its condition
}

TEST_CASE(
    "a carried value grows in a loop without a trip count, whose condition does not read it") {
  const auto bytes = [](const std::string& stay) {
    return graph_bytes(
        R"(g (float[2] x, int64 k) => (float[a] y, int64 z) <bool c = {1}, int64 one = {1}> {
      y, z = Loop ( , c, x, one) <body = b (int64 i, bool go, float[d] v, int64 n) => (bool stay, float[e] w, int64 m)
        { m = Add(n, n) w = Concat<axis = 0>(v, x) )" +
        stay + " }> }");
  };
  const std::vector<Tensor> inputs = {floats({2}, {1, 2}), ints({}, {5})};
  CHECK(run_model(bytes("stay = Less(i, k)"), {inputs[0], ints({}, {1})}) ==
        Lists{{1, 2, 1, 2, 1, 2}, {4}});
  CHECK(run_model(bytes("stay = Less(m, k)"), inputs) == Lists{{1, 2, 1, 2, 1, 2, 1, 2}, {8}});
  CHECK(
      error_of(
          bytes("s = ReduceSum<keepdims = 0>(w) u = ReduceSum<keepdims = 0>(x) stay = Less(s, u)"))
          .find("without a trip count, whose condition reads a carried value that grows") !=
      std::string::npos);
}

TEST_CASE("data inside of a branch decide about the size of its output") {
  Expected<Model> model = import_bytes(graph_bytes(R"(g (float[N] x, bool c) => (int64[1, M] y) {
      y = If (c) <then_branch = a () => (int64[1, A] t) { t = NonZero(x) }, else_branch = b () => (int64[1, B] e) { m = Relu(x) e = NonZero(m) }>
    })"));
  REQUIRE(model);
  CHECK(error_text(verify(model->graph)) == "");
  const std::string unlimited =
      R"(g (float[N] x, int64 n, bool c) => (float[M] y) <int64 zero = {0}, int64 one = {1}> {
      y = If (c) <then_branch = a () => (float[A] t) { m = Mul(n, n) r = Range(zero, m, one) t = Cast<to = 1>(r) }, else_branch = b () => (float[B] e) { e = Neg(x) }>
    })";
  const Tensor x = floats({2}, {1, 2}), three = ints({}, {3});
  Tensor taken = Tensor::zeros(DType::boolean, {});
  CHECK(run_model(graph_bytes(unlimited), {x, three, taken}) == Lists{{-1, -2}});
  taken.set(0, 1);
  CHECK(run_model(graph_bytes(unlimited), {x, three, taken}) == Lists{{0, 1, 2, 3, 4, 5, 6, 7, 8}});
}

TEST_CASE("the body computes the size of the rows that all iterations give") {
  const std::string bytes = graph_bytes(R"(g (float[N] x, int64 m, bool c) => (int64[M, 1, A] all) {
      all = Loop (m, c) <body = b (int64 i, bool go) => (bool stay, int64[1, A] row) { stay = Identity(go) row = NonZero(x) }>
    })");
  Expected<Model> model = import_bytes(bytes);
  REQUIRE(model);
  CHECK(error_text(verify(model->graph)) == "");
  const Tensor x = floats({4}, {5, 0, 0, 7});
  CHECK(run_model(bytes, {x, ints({}, {3}), truth(true)}) == Lists{{0, 3, 0, 3, 0, 3}});
  CHECK(run_model(bytes, {x, ints({}, {0}), truth(true)}) == Lists{{}});
}

TEST_CASE("a size from the data of a body has another name than one around it") {
  const std::string bytes = graph_bytes(R"(g (int64 s, bool c) => (int64 last, int64[M] all) {
      once, many = Loop (s, c, s) <body = b (int64 i, bool go, int64 v) => (bool stay, int64 next, int64 row)
        { stay = Identity(go)
          next = Loop (v, , v) <body = in (int64 k, bool on, int64 w) => (bool more, int64 same) { more = Identity(on) same = Identity(w) }>
          row = Identity(v) }>
      last, all = Loop (s, c, once) <body = d (int64 i, bool go, int64 v) => (bool stay, int64 next, int64 row)
        { stay = Identity(go) next = Identity(v) row = Identity(v) }>
    })");
  Expected<Model> model = import_bytes(bytes);
  REQUIRE(model);
  CHECK(error_text(verify(model->graph)) == "");
}

TEST_CASE("what regions cannot do is said") {
  CHECK(error_of(graph_bytes(R"(g (float[2] x, bool c) => (float[a, b] y) <int64[1] zero = {0}> {
      y = If (c) <then_branch = a () => (float[2] t) { t = Neg(x) }, else_branch = b () => (float[1, 2] e) { e = Unsqueeze(x, zero) }> })"))
            .find("chooses between f32[2] and f32[1, 2]") != std::string::npos);
  CHECK(error_of(graph_bytes(R"(g (float[2] x) => (float[a] y) <int64 m = {50}> {
      y = Loop (m, , x) <body = b (int64 i, bool go, float[a] v) => (bool stay, float[a] next) { p = Neg(v) q = Abs(p) stay = Identity(go) next = Concat<axis = 0>(q, v) }> })"))
            .find("carried value 0 is f32[turn_1.0 * 2] before an iteration and f32[turn_1.0 * 4] "
                  "behind "
                  "it") != std::string::npos);
}

}  // namespace
}  // namespace tw::test
