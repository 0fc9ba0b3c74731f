// If, Loop, Scan, sequences and optionals that are decided while importing.
#include <doctest/doctest.h>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

using Lists = std::vector<std::vector<double>>;

TEST_CASE("a constant condition takes its branch, which sees the names around it") {
  const auto graph = [](int condition) {
    return std::string("g (float[2] x) => (float[2] y) <bool c = {") + (condition ? "1" : "0") +
           R"(}, float[2] w = {10, 20}> {
      d = Add(x, w)
      y = If (c) <then_branch = a () => (float[2] t) <float[1] w = {3}> { t = Mul(d, w) }, else_branch = b () => (float[2] e) { e = Sub(x, w) }>
    })";
  };
  CHECK(run_graph(graph(1), {floats({2}, {1, 2})}) == std::vector<double>{33, 66});
  CHECK(run_graph(graph(0), {floats({2}, {1, 2})}) == std::vector<double>{-9, -18});
}

TEST_CASE("a branch that does not fit the sizes is no mistake: it is refused when a run takes it") {
  const auto graph = [](int extent) {
    return "g (float[" + std::to_string(extent) +
           R"(] x, bool c) => (float[n] y) <int64[2] two = {2, 2}> {
      y = If (c) <then_branch = a () => (float[n] t) { s = Reshape(x, two) r = ReduceSum<keepdims = 0>(s) t = Add(x, r) }, else_branch = b () => (float[n] e) { e = Neg(x) }>
    })";
  };
  const Tensor yes = Tensor{DType::boolean, {}, {std::byte{1}}},
               no = Tensor{DType::boolean, {}, {std::byte{0}}};
  CHECK(run_model(graph_bytes(graph(4)), {floats({4}, {1, 2, 3, 4}), yes}) ==
        Lists{{11, 12, 13, 14}});
  Expected<Model> model = import_bytes(graph_bytes(graph(3)));
  REQUIRE_MESSAGE(bool(model), error_text(model.takeError()));
  REQUIRE(model->warnings.size() == 1);
  CHECK(model->warnings[0].find("then_branch does not fit these sizes: Reshape") !=
        std::string::npos);
  CHECK(run_model(graph_bytes(graph(3)), {floats({3}, {1, 2, 3}), no}) == Lists{{-1, -2, -3}});
  Expected<std::vector<Tensor>> taken = evaluate(model->graph, {floats({3}, {1, 2, 3}), yes});
  REQUIRE(!taken);
  CHECK(error_text(taken.takeError()).find("then_branch does not fit these sizes") !=
        std::string::npos);
}

TEST_CASE("where neither branch fits, both reasons are told, and no standard is broken") {
  const std::string error = error_of(graph_bytes(
      R"(g (float[3] x, bool c) => (float[n] y) <int64[2] two = {2, 2}, int64[1] one = {5}> {
    y = If (c) <then_branch = a () => (float[m, n] t) { t = Reshape(x, two) }, else_branch = b () => (float[n] e) { e = Reshape(x, one) }> })"));
  CHECK(error.find("neither branch fits") != std::string::npos);
  CHECK(error.find("then_branch: Reshape") != std::string::npos);
  CHECK(error.find("else_branch: Reshape") != std::string::npos);
  CHECK(error.find("standard") == std::string::npos);
}

TEST_CASE(
    "a loop of constant length is unrolled: carried values, all iterations' results, the "
    "iteration's "
    "number") {
  CHECK(
      run_model(
          graph_bytes(
              R"(g (float[2] x) => (float[2] last, float[3, 2] all) <int64 m = {3}, bool c = {1}> {
      last, all = Loop (m, c, x) <body = b (int64 i, bool go, float[2] v) => (bool stay, float[2] next, float[2] row)
        { stay = Identity(go) f = Cast<to = 1>(i) next = Add(v, f) row = Mul(next, x) }>
    })"),
          {floats({2}, {1, 2})}) == Lists{{4, 5}, {1, 4, 2, 6, 4, 10}});
}

TEST_CASE("a loop ends when its condition is false; no iteration at all") {
  const auto graph = [](int most) {
    return "g (float[1] x) => (float[1] y, float[n, 1] r) <int64 m = {" + std::to_string(most) +
           R"(}, int64 three = {3}, bool c = {1}> {
      y, r = Loop (m, c, x) <body = b (int64 i, bool go, float[1] v) => (bool stay, float[1] next, float[1] row)
        { stay = Less(i, three) next = Add(v, v) row = Identity(v) }>
    })";
  };
  CHECK(run_model(graph_bytes(graph(100)), {floats({1}, {1})}) == Lists{{16}, {1, 2, 4, 8}});
  CHECK(run_model(graph_bytes(graph(0)), {floats({1}, {1})}) == Lists{{1}, {}});
}

TEST_CASE("scan: axes, directions, states") {
  CHECK(
      run_model(graph_bytes(R"(g (float[2] s, float[2, 3] x) => (float[2] last, float[2, 3] sums) {
      last, sums = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1], scan_output_directions = [1],
        body = b (float[2] a, float[2] v) => (float[2] next, float[2] out) { next = Add(a, v) out = Identity(next) }> (s, x)
    })"),
                {floats({2}, {0, 100}), floats({2, 3}, {1, 2, 3, 4, 5, 6})}) ==
      Lists{{6, 115}, {6, 5, 3, 115, 111, 106}});
}

TEST_CASE("sequences") {
  CHECK(run_graph(
            R"(g (float[2] x, float[2] z) => (float[2, 2] y) <int64 zero = {0}, int64 back = {-1}> {
      s = SequenceConstruct(x, z) t = SequenceInsert(s, z, zero) u = SequenceErase(t, back) n = SequenceLength(u)
      f = Cast<to = 1>(n) first = SequenceAt(u, back) m = Mul(first, f) v = SequenceInsert(u, m) w = SequenceErase(v, zero)
      y = ConcatFromSequence<axis = 0, new_axis = 1>(w)
    })",
            {floats({2}, {1, 2}), floats({2}, {3, 4})}) == std::vector<double>{1, 2, 2, 4});
  CHECK(run_graph(R"(g (float[5] x) => (float[4] y) <int64 two = {2}, int64 i = {1}> {
      s = SplitToSequence<axis = 0>(x, two) a = SequenceAt(s, i) e = SequenceEmpty() r = SequenceInsert(e, a) q = SequenceInsert(r, a)
      y = ConcatFromSequence<axis = 0>(q)
    })",
                  {floats({5}, {1, 2, 3, 4, 5})}) == std::vector<double>{3, 4, 3, 4});
  CHECK(
      run_graph(
          R"(g (float[2] x, int64 i) => (float[2] y) { s = SequenceConstruct(x, x) d = Add(x, x) t = SequenceInsert(s, d) y = SequenceAt(t, i) })",
          {floats({2}, {1, 2}), ints({}, {2})}) == std::vector<double>{2, 4});
}

TEST_CASE(
    "positions in a sequence that are computed from the data, of tensors of different sizes too") {
  const auto at = [](const std::string& nodes, int position) {
    return run_model(graph_bytes("g (float[1] x, float[2] z, int64 i) => (float[n] a, float[m] b) "
                                 "{ s = SequenceConstruct(x, z) w = Concat<axis = 0>(x, z) " +
                                 nodes +
                                 " k = Constant<value_int = 0>() l = Constant<value_int = 1>() a = "
                                 "SequenceAt(t, k) b = SequenceAt(t, l) }"),
                     {floats({1}, {1}), floats({2}, {2, 3}), ints({}, {position})});
  };
  const std::vector<double> x = {1}, z = {2, 3}, w = {1, 2, 3};
  const std::string insert = "t = SequenceInsert(s, w, i)",
                    erase = "r = SequenceInsert(s, w) t = SequenceErase(r, i)";
  CHECK(at(insert, 0) == Lists{w, x});
  CHECK(at(insert, 1) == Lists{x, w});
  CHECK(at(insert, 2) == Lists{x, z});
  CHECK(at(insert, -2) == Lists{w, x});
  CHECK(at(erase, 0) == Lists{z, w});
  CHECK(at(erase, 1) == Lists{x, w});
  CHECK(at(erase, -1) == Lists{x, z});
  CHECK(at("u = SequenceAt(s, i) t = SequenceConstruct(u, x)", 0) == Lists{x, x});
  CHECK(at("u = SequenceAt(s, i) t = SequenceConstruct(u, x)", -1) == Lists{z, x});
}

TEST_CASE("branches of one element and different ranks give the higher one") {
  for (const int64_t i : {0, 1})
    CHECK(run_graph(R"(g (float x, float[1] z, int64 i) => (float[1] y) { c = Cast<to = 9>(i)
      v = If (c) <then_branch = a () => (float t) { t = Neg(x) }, else_branch = b () => (float[1] e) { e = Neg(z) }> y = Add(v, z) })",
                    {floats({}, {5}), floats({1}, {7}), ints({}, {i})}) ==
          std::vector<double>{i != 0 ? 2.0 : 0.0});
}

TEST_CASE("a sequence carried by a loop, and a map over one") {
  CHECK(run_graph(R"(g (float[1] x) => (float[3] y) <int64 m = {3}> {
      e = SequenceEmpty()
      s = Loop (m, , e) <body = b (int64 i, bool go, seq(float[1]) a) => (bool stay, seq(float[1]) c)
        { stay = Identity(go) f = Cast<to = 1>(i) v = Add(x, f) c = SequenceInsert(a, v) }>
      t = SequenceMap (s, x) <body = w (float[1] a, float[1] b) => (float[1] c) { c = Mul(a, b) }>
      y = ConcatFromSequence<axis = 0>(t)
    })",
                  {floats({1}, {2})}) == std::vector<double>{4, 6, 8});
}

TEST_CASE("optionals") {
  CHECK(run_model(graph_bytes(R"(g (float[1] x) => (float[1] y, bool h, bool n) {
      o = Optional(x) h = OptionalHasElement(o) y = OptionalGetElement(o) p = Optional<type: type_proto = float[1]>() n = OptionalHasElement(p)
    })",
                              18),
                  {floats({1}, {7})}) == Lists{{7}, {1}, {0}});
}

TEST_CASE("sequences as inputs and outputs are numbered tensors") {
  const std::string bytes = graph_bytes(
      R"(g (seq(float[N]) s) => (seq(float[N]) t) { t = SequenceMap (s) <body = b (float[N] a) => (float[N] c) { c = Neg(a) }> })");
  CHECK(error_of(bytes).find("--dim s=N") != std::string::npos);
  ImportOptions options;
  options.dims["s"] = 2;
  Expected<Model> model = import_bytes(bytes, options);
  REQUIRE(model);
  REQUIRE(model->graph.inputs().size() == 2);
  CHECK(model->graph.value(model->graph.inputs()[1]).name == "s_1");
  CHECK(to_string(model->graph.value(model->graph.inputs()[1]).type) == "f32[N_1.1]");
  REQUIRE(model->graph.outputs().size() == 2);
  CHECK(model->graph.outputs()[1].name == "t_1");
}

TEST_CASE("gaps: inside of bodies, and lists where tensors are wanted") {
  const std::string nested = error_of(
      graph_bytes(R"(g (float[2] x) => (float[2] y) <int64 m = {2}> {
      y = Loop (m, , x) <body = b (int64 i, bool go, float[2] v) => (bool stay, float[2] next) { stay = Identity(go) t = Nonsense(v) next = Add(t, v) }>
    })"));
  CHECK(nested.find("Nonsense (x1): no such operator") != std::string::npos);
  CHECK(nested.find("Loop") == std::string::npos);
  CHECK(error_of(
            graph_bytes("g (float[2] x) => (float[2] y) { s = SequenceConstruct(x) y = Relu(s) }"))
            .find("input 0 is not a tensor") != std::string::npos);
  CHECK(error_of(graph_bytes("g (float[2] x) => (float[2] y) <int64 i = {5}> { s = "
                             "SequenceConstruct(x) y = SequenceAt(s, i) }"))
            .find("position 5") != std::string::npos);
}

}  // namespace
}  // namespace tw::test
