// Regions in the Graph IR: text, checks and evaluation.
#include <doctest/doctest.h>

#include "ir/graph/graph.h"

namespace tw {
namespace {

const char* kLoop = R"(graph @g(batch) {
  %x: f32[batch, 2] = input
  %w: f32[3, batch, 2] = input
  %last: f32[batch, 2], %rows: f32[3, 2] = loop(%x, %w, %x) trip=[3] carried=1 sliced=1 turn="t" body=graph @body(batch, t) {
      %a: f32[batch, 2] = input
      %row: f32[batch, 2] = input
      %first: f32[batch, 2] = input
      %n: i64[] = dim_vector() values=[t] scalar=true
      %f: f32[] = cast(%n) to=f32
      %sum: f32[batch, 2] = binary(%a, %row) function=add
      %scaled: f32[batch, 2] = binary(%sum, %f) function=mul
      %both: f32[batch, 2] = binary(%scaled, %first) function=sub
      %mean: f32[2] = reduce(%both) kind=mean axes=[0] keep=false
      output %scaled
      output %mean
    }
  output %last
  output %rows
}
)";

const char* kChoice = R"(graph @g() {
  %c: bool[] = input
  %x: f32[2] = input
  %y: f32[2] = if(%c, %x, %x) then_branch=graph @then() {
      %a: f32[2] = input
      %b: f32[2] = unary(%a) function=neg
      output %b
    } else_branch=graph @else() {
      %a: f32[2] = input
      output %a
    }
  output %y
}
)";

Tensor floats(std::vector<int64_t> shape, std::vector<double> values) {
  Tensor t = Tensor::zeros(DType::f32, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}

std::vector<double> doubles(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at(i));
  return out;
}

std::string problem(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  Expected<Graph> graph = parse_graph(text);
  if (graph) return "";
  return error_text(graph.takeError());
}

TEST_CASE("regions print, parse and hash") {
  for (const char* text : {kLoop, kChoice}) {
    Expected<Graph> graph = parse_graph(text);
    if (!graph) FAIL(error_text(graph.takeError()));
    const std::string printed = print(*graph);
    Expected<Graph> again = parse_graph(printed);
    if (!again) FAIL(error_text(again.takeError()));
    CHECK(print(*again) == printed);
    CHECK(graph_hash(*again) == graph_hash(*graph));
  }
}

TEST_CASE(
    "a loop is evaluated: carried values, rows, the iteration, symbols of the graph around it") {
  Expected<Graph> graph = parse_graph(kLoop);
  REQUIRE(graph);
  auto result = evaluate(*graph, {floats({1, 2}, {1, 2}), floats({3, 1, 2}, {1, 1, 2, 2, 3, 3})});
  REQUIRE(result);
  CHECK(doubles((*result)[0]) == std::vector<double>{33, 39});
  CHECK(doubles((*result)[1]) == std::vector<double>{1, 1, 7, 8, 32, 37});
}

TEST_CASE("a choice is evaluated") {
  Expected<Graph> graph = parse_graph(kChoice);
  REQUIRE(graph);
  for (int c : {0, 1}) {
    Tensor condition = Tensor::zeros(DType::boolean, {});
    condition.set_int(0, c);
    auto result = evaluate(*graph, {condition, floats({2}, {1, 2})});
    REQUIRE(result);
    CHECK(doubles((*result)[0]) == (c ? std::vector<double>{-1, -2} : std::vector<double>{1, 2}));
  }
}

TEST_CASE("regions that do not fit are errors") {
  CHECK(problem(kLoop, "loop(%x, %w, %x)", "loop(%x, %w)").find("2 inputs for a body of 3") !=
        std::string::npos);
  CHECK(problem(kLoop, "trip=[3]", "trip=[4]").find("slices of") != std::string::npos);
  CHECK(problem(kLoop, "carried=1 sliced=1", "carried=2").find("is given f32[3, batch, 2]") !=
        std::string::npos);
  CHECK(problem(kLoop, "body=graph @body(batch, t)", "body=graph @body(batch, t, q)")
            .find("symbol 'q' of the region") != std::string::npos);
  CHECK(problem(kChoice, "%b: f32[2] = unary(%a) function=neg",
                "%b: f32[2, 1] = reshape(%a) shape=[2,1]")
            .find("of one branch and") != std::string::npos);
}

}  // namespace
TEST_CASE("a region has the limits of the symbols around it") {
  const std::string text = R"(graph @g(n.1 >= 5 <= 6) {
  %c: bool[] = input
  %x: f32[n.1, 6] = input
  %y: f32[n.1 * 6] = if(%c, %x, %x) then_branch=graph @then(n.1) {
      %a: f32[n.1, (n.1 + 1) // 2 + 3] = input
      %b: f32[n.1 * 6] = reshape(%a) shape=[n.1 * ((n.1 + 1) // 2 + 3)]
      output %b
    } else_branch=graph @else(n.1) {
      %a: f32[n.1, 6] = input
      %b: f32[n.1 * 6] = reshape(%a) shape=[n.1 * 6]
      output %b
    }
  output %y
}
)";
  const auto without = problem(text, " >= 5 <= 6", "");
  CAPTURE(without);
  CHECK(without != "");
  // The parser reads the region before the graph around it, so its own header gives the limits too.
  CHECK(problem(text, "@then(n.1)", "@then(n.1 >= 5 <= 6)") == "");
  // A region that is built without text gets the limits from the graph around it.
  Graph region;
  region.name = "body", region.symbols = {"n.1"};
  const Expr n = var("n.1"), extent = floor_div(n + 1, 2) + 3;
  const ValueId a = region.add_input("a", {DType::f32, {n, extent}, {}});
  region.add_output(a, "");
  Graph graph;
  graph.limits["n.1"] = {5, 6, 1};
  const ValueId c = graph.add_input("c", {DType::boolean, {}, {}});
  const ValueId x = graph.add_input("x", {DType::f32, {n, 6}, {}});
  const auto shared = std::make_shared<const Graph>(std::move(region));
  Expected<ValueId> y = graph.add(op::If{{shared}, {shared}}, {c, x, x});
  REQUIRE_MESSAGE(bool(y), error_text(y.takeError()));
  graph.add_output(*y, "y");
  CHECK(to_string(graph.value(*y).type) == "f32[n.1, 6]");
  Error error = verify(graph);
  CHECK_MESSAGE(!error, error_text(std::move(error)));
}

}  // namespace tw
