#include <doctest/doctest.h>

#include <set>

#include "passes/pass.h"
#include "random_graph.h"

using namespace tw;

namespace {

Graph parsed(const char* text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

// Names of the groups' nodes' outputs, a line a group: "c r | p".
std::string grouping(const Graph& graph) {
  std::string text;
  for (const Group& group : fuse_groups(graph)) {
    if (!text.empty()) text += " | ";
    for (size_t i = 0; i < group.nodes.size(); ++i) text += (i ? " " : "") + graph.value(graph.node(group.nodes[i]).output).name;
  }
  return text;
}

void check_group(const Graph& graph, const Group& group, const std::vector<std::vector<NodeId>>& users) {
  std::set<NodeId> inside(group.nodes.begin(), group.nodes.end());
  REQUIRE(inside.contains(group.anchor));
  FusionClass kind = op_info(graph.node(group.anchor).attrs).fusion;
  bool after_anchor = false;
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    bool escapes = false;
    for (NodeId user : users[static_cast<size_t>(node.output.index)]) escapes |= !inside.contains(user);
    for (const Graph::Output& output : graph.outputs()) escapes |= output.value == node.output;
    if (id != group.nodes.back()) CHECK_FALSE(escapes);
    if (id == group.anchor) {
      after_anchor = true;
      continue;
    }
    if (kind == FusionClass::complex_out) CHECK(after_anchor);
    if (kind == FusionClass::injective)
      CHECK(op_info(node.attrs).fusion == FusionClass::injective);
    else
      CHECK(is_elementwise(node));
    CHECK(kind != FusionClass::opaque);
  }
}

void check_groups(const Graph& graph) {
  std::vector<Group> groups = fuse_groups(graph);
  std::vector<std::vector<NodeId>> users = graph.users();
  std::set<NodeId> done;
  for (const Group& group : groups) {
    CHECK(group.nodes.size() <= 24);
    check_group(graph, group, users);
    std::set<NodeId> inside;
    for (NodeId id : group.nodes) {
      // What comes from another group comes from one before, and is its last node's.
      for (ValueId input : graph.node(id).inputs) {
        if (!input.valid() || !graph.def(input)) continue;
        NodeId maker = graph.value(input).def;
        CHECK((inside.contains(maker) || done.contains(maker)));
      }
      inside.insert(id);
    }
    for (NodeId id : inside) CHECK(done.insert(id).second);
  }
  CHECK(done.size() == graph.order().size());
}

}  // namespace

TEST_CASE("groups of random graphs are a partition in topological order with one output each") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Graph graph = test::random_graph(seed);
    std::string text = print(graph);
    CAPTURE(text);
    check_groups(graph);
    Target target;
    PassContext context{target};
    CHECK(error_text(run_passes(graph, context, default_pipeline())) == "");
    check_groups(graph);
  }
}
