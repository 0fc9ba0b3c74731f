#include <doctest/doctest.h>

#include "passes/fuse_groups.h"
#include "passes/pass.h"

using namespace tw;

namespace {

// Builds x through a 3x3 convolution and ReLU, with the nodes of `tail` behind %r.
Graph network(const std::string& tail, const std::string& layout = "@1:4") {
  std::string text = R"(graph @t() {
    %x: f32[1, 8, 12, 12]@1:4 = input
    %w: f32[8, 8, 3, 3] = input
    %zero: f32[] = const [0]
    %c: f32[1, 8, 12, 12]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]
    %r: f32[1, 8, 12, 12]LAYOUT = binary(%zero, %c) function=max
)" + tail + "}";
  for (size_t at = text.find("LAYOUT"); at != std::string::npos; at = text.find("LAYOUT"))
    text.replace(at, 6, layout);
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

std::string pool(const std::string& extents, const std::string& attributes,
                 const std::string& kind = "max") {
  return "%p: f32[1, 8, " + extents + "]LAYOUT = pool(%r) kind=" + kind + " " + attributes + "\n";
}

const std::string kOutput = "output %p\n",
                  kHalves = "kernel=[2,2] strides=[2,2] dilations=[1,1] pads=[0,0,0,0]";

std::vector<Group> groups_of(const Graph& graph, Algorithm algorithm = Algorithm::direct) {
  std::vector<Group> groups = fuse_groups(graph);
  for (Group& group : groups)
    if (std::holds_alternative<op::Conv>(graph.node(group.anchor).attrs))
      group.algorithm = algorithm;
  fuse_pools(graph, groups);
  return groups;
}

bool fuses(const std::string& tail, Algorithm algorithm = Algorithm::direct,
           const std::string& layout = "@1:4") {
  const Graph graph = network(tail, layout);
  const std::vector<Group> groups = groups_of(graph, algorithm);
  for (const Group& group : groups)
    if (std::holds_alternative<op::Conv>(graph.node(group.anchor).attrs))
      return group.nodes.size() > 2;
  return false;
}

}  // namespace

TEST_CASE("a pool of windows side by side joins the convolution, with what follows it") {
  const Graph graph = network(pool("6, 6", kHalves) +
                              "%y: f32[1, 8, 6, 6]LAYOUT = unary(%p) function=tanh\noutput %y\n");
  CHECK(print_groups(graph, groups_of(graph, Algorithm::winograd_f4)) ==
        "group 0 complex_out winograd_f4 (%x, %w, %zero) -> %y: f32[1, 8, 6, 6]@1:4\n"
        "  %c = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]\n"
        "  %r = binary(%zero, %c) function=max\n"
        "  %p = pool(%r) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] pads=[0,0,0,0]\n"
        "  %y = unary(%p) function=tanh\n");
}

TEST_CASE("pools whose windows do not lie side by side stay apart") {
  CHECK(fuses(pool("4, 6", "kernel=[3,2] strides=[3,2] dilations=[1,1] pads=[0,0,0,0]", "average") +
              kOutput));
  // The windows have too many points.
  CHECK(fuses(pool("2, 2", "kernel=[5,5] strides=[5,5] dilations=[1,1] pads=[0,0,0,0]") +
              kOutput) == false);
  // Rows beyond the last windows do no harm.
  CHECK(fuses(pool("2, 4", "kernel=[5,3] strides=[5,3] dilations=[1,1] pads=[0,0,0,0]") + kOutput));
  CHECK_FALSE(
      fuses(pool("5, 5", "kernel=[3,3] strides=[2,2] dilations=[1,1] pads=[0,0,0,0]") + kOutput));
  CHECK_FALSE(
      fuses(pool("3, 3", "kernel=[2,2] strides=[4,4] dilations=[1,1] pads=[0,0,0,0]") + kOutput));
  CHECK_FALSE(
      fuses(pool("7, 7", "kernel=[2,2] strides=[2,2] dilations=[1,1] pads=[1,1,1,1]") + kOutput));
  CHECK_FALSE(
      fuses(pool("5, 5", "kernel=[2,2] strides=[2,2] dilations=[2,2] pads=[0,0,0,0]") + kOutput));
  CHECK_FALSE(fuses(
      pool("3, 3", "kernel=[5,5] strides=[5,5] dilations=[1,1] pads=[0,0,0,0] ceil_mode=true") +
      kOutput));
  CHECK_FALSE(
      fuses(pool("3, 3", "kernel=[4,4] strides=[4,4] dilations=[1,1] pads=[0,0,1,1]") + kOutput));
}

TEST_CASE(
    "a pool stays apart where others read its input, where channels are not in blocks, and behind "
    "unsuitable tiles") {
  CHECK(fuses(pool("6, 6", kHalves) + kOutput));
  CHECK_FALSE(fuses(pool("6, 6", kHalves) + kOutput + "output %r\n"));
  CHECK_FALSE(fuses(pool("6, 6", kHalves) + kOutput +
                    "%q: f32[1, 8, 12, 12]LAYOUT = unary(%r) function=tanh\noutput %q\n"));
  CHECK_FALSE(fuses(pool("6, 6", kHalves) + kOutput, Algorithm::direct, ""));
  CHECK_FALSE(fuses(pool("6, 6", kHalves) + kOutput, Algorithm::strassen));
  const std::string thirds =
      pool("4, 4", "kernel=[3,3] strides=[3,3] dilations=[1,1] pads=[0,0,0,0]") + kOutput;
  CHECK_FALSE(fuses(thirds, Algorithm::winograd_f2));
  CHECK_FALSE(fuses(thirds, Algorithm::winograd_f4));
  CHECK(fuses(thirds, Algorithm::winograd_f6));
}

TEST_CASE("of several pools in a row the first joins the convolution, each other is a kernel") {
  const Graph graph = network(
      pool("6, 6", kHalves) + "%q: f32[1, 8, 3, 3]LAYOUT = pool(%p) kind=average " + kHalves +
      "\n%s: f32[1, 8, 3, 3]LAYOUT = pool(%q) kind=sum kernel=[1,1] strides=[1,1] dilations=[1,1] "
      "pads=[0,0,0,0]\noutput %s\n");
  std::vector<size_t> sizes;
  for (const Group& group : groups_of(graph)) sizes.push_back(group.nodes.size());
  CHECK(sizes == std::vector<size_t>{3, 1, 1});
}
