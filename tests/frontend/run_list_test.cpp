// Sequences and optionals that depend on data: the number of their tensors, the sizes of these, and
// whether they exist.
#include <doctest/doctest.h>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

using Lists = std::vector<std::vector<double>>;

Tensor truth(bool value) {
  Tensor t = Tensor::zeros(DType::boolean, {});
  t.set_int(0, value);
  return t;
}

// Runs nodes on s, a split of x (five rows of two) into parts of k rows.
Lists of_split(const std::string& outputs, const std::string& nodes, int64_t k) {
  return run_model(graph_bytes("g (float[5, 2] x, int64 k) => (" + outputs +
                               ") { s = SplitToSequence<axis = 0>(x, k) " + nodes + " }"),
                   {floats({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), ints({}, {k})});
}

TEST_CASE("parts of a size that the data say") {
  CHECK(of_split("seq(float[a, b]) s", "", 2) ==
        Lists{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0}, {2, 2, 2, 2, 1, 2}});
  CHECK(of_split("seq(float[a, b]) s", "", 9) == Lists{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2}});
  CHECK(of_split("int64 n", "n = SequenceLength(s)", 2) == Lists{{3}});
  CHECK(run_model(graph_bytes("g (float[2, 3] x, int64 k) => (seq(float[a, b]) s) { s = "
                              "SplitToSequence<axis = 1>(x, k) }"),
                  {floats({2, 3}, {0, 1, 2, 3, 4, 5}), ints({}, {2})}) ==
        Lists{{0, 1, 3, 4, 2, 0, 5, 0}, {2, 2, 2, 1}});
  const Tensor x = floats({2}, {1, 2});
  Expected<Model> model = import_bytes(
      graph_bytes("g (float[2] x, int64 k) => (seq(float[a]) s) { s = SplitToSequence(x, k) }"));
  REQUIRE(model);
  Expected<std::vector<Tensor>> outputs = evaluate(model->graph, {x, ints({}, {0})}, {});
  CHECK_FALSE(outputs);
  llvm::consumeError(outputs.takeError());
}

TEST_CASE("items of a sequence of any length: taken out, put in, taken away, put together") {
  const auto i = [](int64_t at) {
    return " i = Constant<value_int = " + std::to_string(at) + ">() ";
  };
  CHECK(of_split("float[a, b] y", i(1) + "y = SequenceAt(s, i)", 2) == Lists{{4, 5, 6, 7}});
  CHECK(of_split("float[a, b] y", i(-1) + "y = SequenceAt(s, i)", 2) == Lists{{8, 9}});
  CHECK(
      of_split(
          "float[a, b] y",
          "l = SequenceLength(s) o = Constant<value_int = 1>() i = Sub(l, o) y = SequenceAt(s, i)",
          3) == Lists{{6, 7, 8, 9}});
  const std::string item = "w = Constant<value = float[1, 3] {10, 11, 12}>() ";
  CHECK(of_split("seq(float[a, b]) t", item + "t = SequenceInsert(s, w)", 3)[1] ==
        std::vector<double>{3, 2, 2, 2, 1, 3});
  CHECK(of_split("seq(float[a, b]) t", item + i(0) + "t = SequenceInsert(s, w, i)", 3)[1] ==
        std::vector<double>{1, 3, 3, 2, 2, 2});
  CHECK(of_split("float[a, b] y", item + i(-1) + "t = SequenceInsert(s, w, i) y = SequenceAt(t, i)",
                 3) == Lists{{6, 7, 8, 9}});
  CHECK(of_split("seq(float[a, b]) t", "t = SequenceErase(s)", 2)[1] ==
        std::vector<double>{2, 2, 2, 2});
  CHECK(of_split("float[a, b] y",
                 i(0) + "t = SequenceErase(s, i) y = ConcatFromSequence<axis = 0>(t)",
                 2) == Lists{{4, 5, 6, 7, 8, 9}});
  CHECK(of_split("float[a, b] y", "y = ConcatFromSequence<axis = 0>(s)", 2) ==
        Lists{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  CHECK(of_split("float[a, b] y", "e = SequenceErase(s) y = ConcatFromSequence<axis = 1>(e)", 2) ==
        Lists{{0, 1, 4, 5, 2, 3, 6, 7}});
  CHECK(of_split("float[a, b, c] y",
                 "e = SequenceErase(s) y = ConcatFromSequence<axis = 1, new_axis = 1>(e)",
                 2) == Lists{{0, 1, 4, 5, 2, 3, 6, 7}});
}

TEST_CASE("a loop makes a sequence longer as often as the data say") {
  const std::string body =
      R"( <body = b (int64 i, bool go, seq(float[a]) s) => (bool stay, seq(float[a]) t) {
      one = Constant<value_int = 1>() zero = Constant<value_ints = [0]>() end = Add(i, one) to = Reshape(end, minus) v = Slice(x, zero, to) t = SequenceInsert(s, v) )";
  const auto run = [&](const std::string& loop, int64_t n) {
    return run_model(graph_bytes("g (float[4] x, int64 n) => (seq(float[a]) y) <int64[1] minus = "
                                 "{-1}, bool c = {1}> { " +
                                 loop + " }"),
                     {floats({4}, {1, 2, 3, 4}), ints({}, {n})});
  };
  const std::string counted = "e = SequenceEmpty() y = Loop (n, c, e)" + body +
                              "stay = Identity(go) }>";
  CHECK(run(counted, 3) == Lists{{1, 0, 0, 1, 2, 0, 1, 2, 3}, {1, 2, 3}});
  CHECK(run(counted, 6)[1] == std::vector<double>{1, 2, 3, 4, 4, 4});
  CHECK(run(counted, 0) == Lists{{}, {}});
  const std::string behind = "m = Neg(x) e = SequenceConstruct(m) y = Loop (n, c, e)" + body +
                             "stay = Identity(go) }>";
  CHECK(run(behind, 2) == Lists{{-1, -2, -3, -4, 1, 0, 0, 0, 1, 2, 0, 0}, {4, 1, 2}});
  const std::string ended = "e = SequenceEmpty() y = Loop ( , c, e)" + body +
                            "stay = Less(end, n) }>";
  CHECK(run(ended, 3) == Lists{{1, 0, 0, 1, 2, 0, 1, 2, 3}, {1, 2, 3}});
  const std::string either =
      "e = SequenceEmpty() m = Constant<value_int = 50>() y = Loop (m, c, e)" + body +
      "stay = Less(end, n) }>";
  CHECK(run(either, 2)[1] == std::vector<double>{1, 2});
}

TEST_CASE("branches that the data choose give sequences of different lengths, or none") {
  const std::string sequences = R"(g (float[2] x, bool c) => (int64 n, float[a] y) {
      s = If (c) <then_branch = a () => (seq(float[2]) t) { t = SequenceConstruct(x) }, else_branch = b () => (seq(float[4]) e) { w = Concat<axis = 0>(x, x) e = SequenceConstruct(x, w, x) }>
      n = SequenceLength(s) i = Constant<value_int = -1>() r = SequenceErase(s, i) y = SequenceAt(s, i) })";
  CHECK(run_model(graph_bytes(sequences), {floats({2}, {1, 2}), truth(true)}) ==
        Lists{{1}, {1, 2}});
  CHECK(run_model(graph_bytes(sequences), {floats({2}, {1, 2}), truth(false)}) ==
        Lists{{3}, {1, 2}});
  const std::string empty = R"(g (float[2] x, bool c) => (seq(float[2]) s) {
      s = If (c) <then_branch = a () => (seq(float[2]) t) { t = SequenceConstruct(x) }, else_branch = b () => (seq(float[2]) e) { e = SequenceEmpty() }> })";
  CHECK(run_model(graph_bytes(empty), {floats({2}, {1, 2}), truth(true)}) == Lists{{1, 2}, {2}});
  CHECK(run_model(graph_bytes(empty), {floats({2}, {1, 2}), truth(false)}) == Lists{{}, {}});
  const std::string optional = R"(g (float[2] x, bool c) => (bool h, optional(float[2]) s) {
      s = If (c) <then_branch = a () => (optional(float[2]) t) { t = Optional(x) }, else_branch = b () => (optional(float[2]) e) { e = Optional<type = float[2]>() }>
      h = OptionalHasElement(s) })";
  CHECK(run_model(graph_bytes(optional), {floats({2}, {1, 2}), truth(true)}) ==
        Lists{{1}, {1}, {1, 2}});
  CHECK(run_model(graph_bytes(optional), {floats({2}, {1, 2}), truth(false)})[0] ==
        std::vector<double>{0});
}

TEST_CASE("what sequences of a run cannot do is said") {
  const auto said = [](const std::string& graph) { return error_of(graph_bytes(graph)); };
  CHECK(said(R"(g (float[2] x, int64 n) => (float[a] y) <bool c = {1}> { e = SequenceConstruct(x)
      s = Loop (n, c, e) <body = b (int64 i, bool go, seq(float[2]) v) => (bool stay, seq(float[2]) t) { stay = Identity(go) p = SequenceAt(v, i) t = SequenceInsert(v, p) }>
      z = Constant<value_int = 0>() y = SequenceAt(s, z) })")
            .find("what a sequence holds that the loop itself makes longer") != std::string::npos);
  CHECK(said(R"(g (float[2] x, int64 n) => (int64 y) <bool c = {1}> { e = SequenceConstruct(x)
      s = Loop (n, c, e) <body = b (int64 i, bool go, seq(float[2]) v) => (bool stay, seq(float[2]) t) { stay = Identity(go) t = SequenceConstruct(x, x) }>
      y = SequenceLength(s) })")
            .find("does more than grow at its end") != std::string::npos);
  CHECK(
      said(
          R"(g (float[2] x, int64 k) => (float[a] y) { s = SplitToSequence(x, k) t = SequenceMap (s) <body = b (float[a] v) => (float[a] w) { w = Neg(v) }> y = ConcatFromSequence<axis = 0>(t) })")
          .find("a sequence whose length is computed from the data") != std::string::npos);
}

}  // namespace
}  // namespace tw::test
