// widen-floats changes the types of inputs and outputs, so it has no place in run_pass.h.
#include <doctest/doctest.h>

#include "passes/passes.h"
#include "random_graph.h"

using namespace tw;

namespace {

const char* const kBefore = R"(graph @t() {
    %x: f32[2] = input
    %h: f16[2] = input
    %i: i64[2] = input
    %k: f32[2] = const [0.5, 3]
    %a: f32[2] = binary(%x, %k) function=mul
    %b: f32[2] = cast(%h) to=f32
    %c: f32[2] = cast(%i) to=f32
    %d: f32[2] = binary(%a, %b) function=add
    %e: f32[2] = binary(%d, %c) function=add
    %f: i64[2] = cast(%e) to=i64
    output %e
    output %f
  })";
const char* const kAfter = R"(graph @t() {
    %x: f64[2] = input
    %h: f64[2] = input
    %i: i64[2] = input
    %k: f64[2] = const [0.5, 3]
    %a: f64[2] = binary(%x, %k) function=mul
    %b: f64[2] = cast(%h) to=f64
    %c: f64[2] = cast(%i) to=f64
    %d: f64[2] = binary(%a, %b) function=add
    %e: f64[2] = binary(%d, %c) function=add
    %f: i64[2] = cast(%e) to=i64
    output %e
    output %f
  })";

Graph parsed(const char* text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

bool widen(Graph& graph) {
  Target target;
  PassContext context{target};
  Expected<bool> changed = widen_floats(graph, context);
  REQUIRE(bool(changed));
  REQUIRE(error_text(verify(graph)) == "");
  return *changed;
}

}  // namespace

TEST_CASE("widen-floats makes floats f64 and leaves integers alone") {
  Graph graph = parsed(kBefore);
  CHECK(widen(graph));
  CHECK(print(graph) == print(parsed(kAfter)));
  CHECK_FALSE(widen(graph));
}

TEST_CASE("what is quantized is divided and rounded in f32") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[1] = input
    %s: f32[] = const [0.05]
    %y: i8[1] = quantize(%x, %s) to=i8
    output %y
  })");
  CHECK(widen(graph));
  Tensor x = Tensor::zeros(DType::f64, {1});
  x.set(0, 0.375);  // 7.5 steps in f32, a little less in f64
  auto y = evaluate(graph, {x});
  REQUIRE(bool(y));
  CHECK((*y)[0].int_at(0) == 8);
  CHECK_FALSE(widen(graph));
}

TEST_CASE("a widened random graph computes the same but for rounding, and not exactly the same") {
  int differ = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    Graph graph = test::random_graph(seed);
    const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    auto narrow = evaluate(graph, inputs);
    widen(graph);
    std::vector<Tensor> doubles;
    for (const Tensor& tensor : inputs) doubles.push_back(widened(tensor));
    auto wide = evaluate(graph, doubles);
    REQUIRE(bool(narrow));
    REQUIRE(bool(wide));
    for (size_t i = 0; i < wide->size(); ++i) {
      if (!is_float((*narrow)[i].dtype)) continue;
      const double error = test::relative_difference(widened((*narrow)[i]), (*wide)[i]);
      CHECK(error < 1e-4);
      differ += error > 0;
    }
  }
  CHECK(differ > 25);
}
