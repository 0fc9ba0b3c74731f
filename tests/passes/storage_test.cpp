#include "passes/storage.h"

#include "passes/fuse_groups.h"

#include <doctest/doctest.h>

using namespace tw;

namespace {

struct Case {
  Graph graph;
  std::vector<Group> groups;

  explicit Case(const char* text) {
    Expected<Graph> parsed = parse_graph(text);
    if (!parsed) FAIL(error_text(parsed.takeError()));
    graph = std::move(*parsed);
    groups = fuse_groups(graph);
  }

  // Returns the place of each node's value, as "c+64" in another value: "a: c+0, b: c+64, c: c+0".
  std::string residences() const {
    Storage storage(graph, groups);
    std::string text;
    for (NodeId id : graph.order()) {
      ValueId v = graph.node(id).output;
      Residence at = storage.of(v);
      text += (text.empty() ? "" : ", ") + graph.value(v).name + ": " + graph.value(at.root).name +
              "+" + to_string(at.offset);
    }
    return text;
  }

  size_t copies() const {
    Storage storage(graph, groups);
    size_t count = 0;
    for (const Group& group : groups) count += storage.copies(group).size();
    return count;
  }
};

const char* kHead =
    "graph @g() {\n%x: f32[2, 8] = input\n%w: f32[8, 4] = input\n%u: f32[4, 4] = input\n"
    "%a: f32[2, 4] = matmul(%x, %w)\n%b: f32[2, 4] = matmul(%x, %w)\n";

std::string text(const char* rest) { return std::string(kHead) + rest + "}\n"; }

}  // namespace

TEST_CASE("parts of a concat are made inside it") {
  CHECK(
      Case(
          text("%c: f32[4, 4] = concat(%a, %b) axis=0\n%y: f32[4, 4] = matmul(%c, %u)\noutput %y\n")
              .c_str())
          .residences() == "a: c+0, b: c+32, c: c+0, y: y+0");
}

TEST_CASE("parts that do not lie in one piece keep their own memory") {
  CHECK(
      Case(
          text("%c: f32[2, 8] = concat(%a, %b) axis=1\n%y: f32[2, 4] = matmul(%c, %w)\noutput %y\n")
              .c_str())
          .residences() == "a: a+0, b: b+0, c: c+0, y: y+0");
}

TEST_CASE("a part that is an output, an input or there twice is copied") {
  CHECK(Case(text("%c: f32[4, 4] = concat(%a, %b) axis=0\noutput %c\noutput %b\n").c_str())
            .residences() == "a: c+0, b: b+0, c: c+0");
  Case twice(text("%c: f32[6, 4] = concat(%a, %a, %b) axis=0\noutput %c\n").c_str());
  CHECK(twice.residences() == "a: c+0, b: c+64, c: c+0");
  CHECK(twice.copies() == 1);
}

TEST_CASE("concats of concats and slices of parts add their offsets") {
  Case nested(text("%c: f32[4, 4] = concat(%a, %b) axis=0\n%d: f32[4, 4] = matmul(%c, %u)\n%e: "
                   "f32[8, 4] = concat(%d, %c) axis=0\n"
                   "%s: f32[1, 4] = slice(%b) starts=[1,0] steps=[1,1] sizes=[1,4]\n%y: f32[1, 4] "
                   "= matmul(%s, %u)\noutput %e\noutput %y\n")
                  .c_str());
  CHECK(nested.residences() == "a: e+64, b: e+96, c: e+64, d: e+0, e: e+0, s: e+112, y: y+0");
  CHECK(nested.copies() == 0);
}

TEST_CASE("a blocked slice is read in place only in whole blocks") {
  const char* graph =
      "graph @g() {\n%x: f32[1, 3, 4, 4] = input\n%w: f32[32, 3, 1, 1] = input\n"
      "%a: f32[1, 32, 4, 4]@1:16 = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]\n"
      "%s: f32[1, 16, 4, 4]@1:16 = slice(%a) starts=[0,16,0,0] steps=[1,1,1,1] sizes=[1,16,4,4]\n"
      "%t: f32[1, 16, 4, 4]@1:16 = slice(%a) starts=[0,8,0,0] steps=[1,1,1,1] sizes=[1,16,4,4]\n"
      "%p: f32[1, 16, 2, 2]@1:16 = pool(%s) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
      "pads=[0,0,0,0]\n"
      "%q: f32[1, 16, 2, 2]@1:16 = pool(%t) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
      "pads=[0,0,0,0]\n"
      "output %p\noutput %q\n}\n";
  CHECK(Case(graph).residences() == "a: a+0, s: a+1024, t: t+0, p: p+0, q: q+0");
}
