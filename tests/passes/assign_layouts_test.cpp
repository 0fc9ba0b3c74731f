#include "passes/choose/assign_layouts.h"

#include <doctest/doctest.h>

#include "passes/choose/analytic_cost.h"
#include "passes/choose/layout_costs.h"

using namespace tw;

namespace {

Target wide_target() {
  Target target = baseline_target(Arch::x86_64);
  target.vector_bits = 512;
  target.vector_registers = 32;
  return target;
}

Graph parsed(const std::string& text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

void assign(Graph& graph, const CostOracle* costs = nullptr, double multiply_adds = 0) {
  Target target = wide_target();
  target.core.f32 = multiply_adds;
  PassContext context{target};
  context.costs = costs;
  Expected<bool> changed = assign_layouts(graph, context);
  if (!changed) FAIL(error_text(changed.takeError()));
  if (Error error = verify(graph)) FAIL(error_text(std::move(error)));
}

// Returns the block of each node's value, without casts, and the number of casts: "a@16 b p@8 2".
std::string layouts(const Graph& graph) {
  std::string text;
  int casts = 0;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (std::holds_alternative<op::LayoutCast>(node.attrs)) {
      ++casts;
      continue;
    }
    const Value& value = graph.value(node.output);
    text += value.name +
            (value.type.layout.plain() ? "" : "@" + std::to_string(value.type.layout.block)) + " ";
  }
  return text + std::to_string(casts);
}

const std::string kAttrs = " strides=[1,1] dilations=[1,1] pads=[0,0,0,0]";

}  // namespace

TEST_CASE("layouts: convolutions, followers and pools stay in blocks; one cast at the end") {
  Graph graph = parsed(
      "graph @g() {\n%x: f32[1, 3, 32, 32] = input\n%w: f32[64, 3, 1, 1] = input\n%v: f32[64, 64, "
      "1, 1] = input\n"
      "%a: f32[1, 64, 32, 32] = conv(%x, %w)" +
      kAttrs +
      "\n%r: f32[1, 64, 32, 32] = unary(%a) function=tanh\n"
      "%b: f32[1, 64, 32, 32] = conv(%r, %v)" +
      kAttrs +
      "\n%s: f32[1, 64, 32, 32] = binary(%b, %r) function=add\n"
      "%p: f32[1, 64, 16, 16] = pool(%s) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
      "pads=[0,0,0,0]\noutput %p\n}\n");
  assign(graph);
  CHECK(layouts(graph) == "a@16 r@16 b@16 s@16 p@16 1");
}

TEST_CASE("layouts: what only moves data stays plain") {
  Graph graph = parsed(
      "graph @g() {\n%x: f32[2, 8, 16] = input\n%z: f32[2, 8, 16] = input\n%a: f32[2, 8, 16] = "
      "binary(%x, %z) function=add\n"
      "%w: f32[16, 4] = input\n%y: f32[2, 8, 4] = matmul(%a, %w)\noutput %y\n}\n");
  assign(graph);
  CHECK(layouts(graph) == "a y 0");
}

TEST_CASE("layouts: few channels take small blocks, groups a block that divides them") {
  Graph graph = parsed(
      "graph @g() {\n%x: f32[1, 64, 32, 32] = input\n%w: f32[4, 64, 3, 3] = input\n%v: f32[64, 4, "
      "3, 3] = input\n"
      "%u: f32[32, 16, 1, 1] = input\n%a: f32[1, 4, 30, 30] = conv(%x, %w)" +
      kAttrs + "\n%b: f32[1, 64, 28, 28] = conv(%a, %v)" + kAttrs +
      "\n%c: f32[1, 32, 28, 28] = conv(%b, %u)" + kAttrs +
      " group=4\n%y: f32[1, 32, 1, 1] = reduce(%c) kind=mean axes=[2,3]\noutput %y\n}\n");
  assign(graph);
  CHECK(layouts(graph) == "a@4 b@16 c@8 y 0");
}

TEST_CASE(
    "layouts: a block and a half is two narrow vectors where they start in pairs, two wide ones "
    "elsewhere") {
  const std::string text =
      "graph @g() {\n%x: f32[1, 96, 56, 56] = input\n%w: f32[24, 96, 1, 1] = input\n%v: f32[144, "
      "24, 1, 1] = input\n"
      "%u: f32[96, 96, 1, 1] = input\n%p: f32[1, 96, 56, 56] = conv(%x, %u)" +
      kAttrs + "\n%a: f32[1, 24, 56, 56] = conv(%p, %w)" + kAttrs +
      "\n%b: f32[1, 144, 56, 56] = conv(%a, %v)" + kAttrs +
      "\n%y: f32[1, 144, 1, 1] = reduce(%b) kind=mean axes=[2,3]\noutput %y\n}\n";
  for (auto& [multiply_adds, expected] :
       {std::pair(16, "p@16 a@8 b@16 y 0"), std::pair(32, "p@16 a@16 b@16 y 0")}) {
    CAPTURE(multiply_adds);
    Graph graph = parsed(text);
    assign(graph, nullptr, multiply_adds);
    CHECK(layouts(graph) == expected);
  }
}

TEST_CASE("layouts: the oracle decides") {
  struct Frozen : CostOracle {  // moving an element costs more than all arithmetic
    double seconds(const WorkEstimate& work, const Target&) const override {
      return work.scattered + 1e-12 * work.vector_ops;
    }
  };
  std::string text =
      "graph @g() {\n%x: f32[1, 8, 16, 16] = input\n%w: f32[64, 8, 1, 1] = input\n%a: f32[1, 64, "
      "16, 16] = conv(%x, %w)" +
      kAttrs + "\n%y: f32[64, 256] = reshape(%a) shape=[64,256]\noutput %y\n}\n";
  Graph graph = parsed(text);
  Frozen frozen;
  assign(graph, &frozen);
  CHECK(layouts(graph) == "a y 0");
  struct Fluid : CostOracle {  // moving is free
    double seconds(const WorkEstimate& work, const Target&) const override {
      return work.vector_ops / work.efficiency;
    }
  };
  Fluid fluid;
  graph = parsed(text);
  assign(graph, &fluid);
  CHECK(layouts(graph) == "a@16 y 0");
}
