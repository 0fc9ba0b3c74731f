// Layouts of a network, chosen by the measurements in a log.
#include <doctest/doctest.h>

#include "autotune/measured_layouts.h"
#include "passes/choose/assign_layouts.h"
#include "support/temporary_folder.h"
#include "tests/autotune/kernels.h"
#include "tests/ir/parsed.h"

using namespace tw;
using namespace tw::test;

namespace {

Graph two_convolutions() {
  const std::string attributes = " strides=[1,1] dilations=[1,1] pads=[1,1,1,1]\n";
  Expected<Graph> graph = parse_graph(
      "graph @net() {\n%x: f32[1, 24, 28, 28] = input\n%w: f32[24, 24, 3, 3] = input\n%v: f32[40, "
      "24, 3, 3] = input\n"
      "%a: f32[1, 24, 28, 28] = conv(%x, %w)" +
          attributes + "%b: f32[1, 40, 28, 28] = conv(%a, %v)" + attributes + "output %b\n}\n",
      "net");
  if (!graph) FAIL(error_text(graph.takeError()));
  return *graph;
}

int64_t block_of(const Graph& graph, const char* name) {
  for (const NodeId id : graph.order())
    if (const Value& value = graph.value(graph.node(id).output); value.name == name)
      return value.type.layout.block;
  return -1;
}

Graph assigned(const Target& target, const CostOracle* costs) {
  Graph graph = two_convolutions();
  PassContext context{target};
  context.costs = costs;
  Expected<bool> changed = assign_layouts(graph, context);
  REQUIRE(bool(changed));
  return graph;
}

}  // namespace

TEST_CASE(
    "layouts follow measured kernels of the whole network, and a lock's are taken as they are") {
  const Target target = vector_target(512);
  const Graph graph = two_convolutions();
  Expected<std::vector<LayoutPlan>> plans = layout_plans(graph, target, {});
  REQUIRE(bool(plans));
  REQUIRE(plans->size() >= 2);
  CHECK((*plans)[0].block == 16);
  CHECK((*plans)[1].block == 8);
  CHECK(block_of((*plans)[1].graph, "a") == 8);

  const TemporaryFolder folder = require_value(TemporaryFolder::create());
  for (const int64_t fast : {16, 8}) {
    CAPTURE(fast);
    TuningLog log = require_value(TuningLog::open(
        folder.path() + "/" + std::to_string(fast) + ".db", TuningLog::Mode::write));
    for (const LayoutPlan& plan : *plans)
      for (const Task& task : require_value(tasks_of(plan.graph, plan.groups, target)))
        for (const Variant& v : task.variants) {
          Record record;
          record.key = {task.key, target_key(target)};
          record.algorithm = algorithm_name(v.algorithm);
          record.kernel_hash = definition_hash(v.lowered);
          record.schedule = "schedule {\n}\n";
          record.seconds = {plan.block == fast ? 1e-4 : 3e-4};
          require_value(log.add(record));
        }
    Expected<LayoutSeconds> measured = measured_layouts(graph, target, {}, {log, target, 1});
    REQUIRE(bool(measured));
    CHECK(measured->size() == 2);
    const std::unique_ptr<CostOracle> costs = measured_costs(graph, target, *measured);
    const Graph chosen = assigned(target, costs.get());
    CHECK(block_of(chosen, "a") == fast);
    CHECK(block_of(chosen, "b") == fast);
    const std::unique_ptr<CostOracle> settled = settled_costs({{"a", fast}, {"b", fast}});
    CHECK(print(assigned(target, settled.get())) == print(chosen));
  }
  TuningLog empty = require_value(
      TuningLog::open(folder.path() + "/empty.db", TuningLog::Mode::write));
  Expected<LayoutSeconds> none = measured_layouts(graph, target, {}, {empty, target, 1});
  REQUIRE(bool(none));
  CHECK(none->empty());
}

TEST_CASE("an estimated layout does not displace measured ones") {
  const Target target = vector_target(512);
  Graph graph = two_convolutions();
  // %a takes far longer than estimated, and most measured kernels far less. Scaled as those are,
  // the estimate of any other layout of %a looks fast.
  LayoutSeconds measured;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!std::holds_alternative<op::Conv>(node.attrs)) continue;
    const bool slow = graph.value(node.output).name == "a";
    measured[node.output] = slow ? std::map<int64_t, double>{{16, 1e-2}, {8, 2e-2}}
                                 : std::map<int64_t, double>{{16, 1e-7}, {8, 1e-7}, {4, 1e-7}};
  }
  const std::unique_ptr<CostOracle> costs = measured_costs(graph, target, measured);
  CHECK(block_of(assigned(target, costs.get()), "a") == 16);
}
