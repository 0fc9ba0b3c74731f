// Symbols that are read from tensors while a graph runs: text form, order, evaluation, and graphs
// that are refused.
#include <doctest/doctest.h>

#include "ir/graph/graph.h"

namespace {

const char* kText = R"(graph @sizes(n >= 1 <= 40) {
  %x: f32[n, 3] = input
  %count: i64[2] = input
  symbol k.0 = %count[1] <= [n]
  %s: f32[k.0, 3] = slice(%x) starts=[0,0] steps=[1,1] sizes=[k.0,3]
  output %s
}
)";

tw::Graph parsed(const std::string& text) {
  auto graph = tw::parse_graph(text);
  if (!graph) FAIL(tw::error_text(graph.takeError()));
  return std::move(*graph);
}

tw::Expected<std::vector<tw::Tensor>> run(const tw::Graph& graph, int64_t rows, int64_t count) {
  tw::Tensor x = tw::Tensor::zeros(tw::DType::f32, {rows, 3}),
             sizes = tw::Tensor::zeros(tw::DType::i64, {2});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i));
  sizes.set_int(1, count);
  return tw::evaluate(graph, {x, sizes});
}

}  // namespace

TEST_CASE("a graph with sizes made from data prints and reads back") {
  const tw::Graph graph = parsed(kText);
  CHECK(tw::print(graph) == kText);
  CHECK(tw::graph_hash(parsed(tw::print(graph))) == tw::graph_hash(graph));
  CHECK(graph.all_symbols() == std::vector<std::string>{"n", "k.0"});
}

TEST_CASE("evaluation reads a symbol once its value is made, and checks it") {
  const tw::Graph graph = parsed(kText);
  for (int64_t count : {0, 2, 4}) {
    auto outputs = run(graph, 4, count);
    REQUIRE(static_cast<bool>(outputs));
    CHECK((*outputs)[0].shape == std::vector<int64_t>{count, 3});
  }
  for (int64_t count : {-1, 5}) {
    auto outputs = run(graph, 4, count);
    REQUIRE(!outputs);
    CHECK(tw::error_text(outputs.takeError()).find("element 1 of 'count'") != std::string::npos);
  }
}

TEST_CASE("what a size is read from comes before what uses it") {
  tw::Graph graph;
  const tw::ValueId x = graph.add_input("x", {tw::DType::i64, {2}, {}});
  graph.data_symbols.push_back({"k.0", {}, 0, {}, {}, ""});
  const tw::ValueId made = llvm::cantFail(graph.add(tw::op::Iota{{tw::var("k.0")}, 0}, {}, "made"));
  const tw::ValueId source = llvm::cantFail(
      graph.add(tw::op::Binary{tw::BinaryOp::add}, {x, x}, "source"));
  graph.data_symbols[0].value = source;
  graph.add_output(made, "y");
  CHECK(!tw::verify(graph));
  const std::vector<tw::NodeId> order = graph.order();
  REQUIRE(order.size() == 2);
  CHECK(graph.node(order[0]).output == source);
}

TEST_CASE("broken symbols are found") {
  const auto error = [](const std::string& line) {
    auto graph = tw::parse_graph("graph @g() {\n  %x: i64[2] = input\n  %f: f32[2] = input\n  " +
                                 line + "\n  output %x\n}\n");
    return graph ? std::string() : tw::error_text(graph.takeError());
  };
  CHECK(error("symbol k.0 = %x[1]").empty());
  CHECK(error("symbol k = %x[1]").find("must end in '.0'") != std::string::npos);
  CHECK(error("symbol k.0 = %x[2]").find("element 2") != std::string::npos);
  CHECK(error("symbol k.0 = %f[0]").find("f32") != std::string::npos);
  CHECK(error("symbol k.0 = %x[0]\n  symbol k.0 = %x[1]").find("twice") != std::string::npos);
}
