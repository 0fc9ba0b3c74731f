// rank-topk works only for devices with threads, so it has no place in run_pass.h.
#include <doctest/doctest.h>

#include <limits>

#include "passes/passes.h"
#include "tests/ir/graph_testing.h"

using namespace tw;

namespace {

Graph topk(const std::string& type, const std::string& ints, const std::string& out) {
  return test::must(parse_graph("graph @t() {\n%x: " + type + " = input\n%y: " + out +
                                ", %at: i64" + out.substr(out.find('[')) +
                                ", %s: i64[6] = extern(%x) function=topk ints=" + ints +
                                " dims=[3]\noutput %y\noutput %at\n}\n"));
}

bool ranks(Graph& graph, const Target& target) {
  PassContext context{target};
  const bool changed = test::must(find_pass("rank-topk")->run(graph, context));
  REQUIRE(test::error_of(verify(graph)) == "no error");
  return changed;
}

Target with_threads() {
  Target target;
  target.axes = {{"thread.x", "thread", 64}};
  return target;
}

void same_as_the_function(const std::string& type, const std::string& out, const std::string& ints,
                          const Tensor& x) {
  CAPTURE(type);
  CAPTURE(ints);
  const Graph before = topk(type, ints, out);
  Graph after = topk(type, ints, out);
  CHECK(ranks(after, with_threads()));
  CHECK(print(after).find("extern") == std::string::npos);
  const std::vector<Tensor> want = test::must(evaluate(before, {x})),
                            got = test::must(evaluate(after, {x}));
  for (size_t i = 0; i < want.size(); ++i) CHECK(want[i].bytes == got[i].bytes);
}

}  // namespace

TEST_CASE("rank-topk finds what topk finds, equal elements, zeros and NaNs included") {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinite = std::numeric_limits<double>::infinity();
  const Tensor x = test::tensor(DType::f32, {2, 5},
                                {3, 1, 3, 0.0, -0.0, -infinite, nan, 2, nan, infinite});
  for (const char* ints : {"[1,1,1]", "[1,0,1]", "[1,1,0]"})
    same_as_the_function("f32[2, 5]", "f32[2, 3]", ints, x);
  const Tensor column = test::ints(DType::i32, {5, 2}, {4, -7, 4, 0, 9, 0, -1, 2, 9, 2});
  for (const char* ints : {"[0,1,1]", "[0,0,1]"})
    same_as_the_function("i32[5, 2]", "i32[3, 2]", ints, column);
}

TEST_CASE("rank-topk leaves long rows alone, and targets without threads") {
  Graph graph = topk("f32[2, 5]", "[1,1,1]", "f32[2, 3]");
  CHECK_FALSE(ranks(graph, Target{}));
  Graph rows = topk("f32[1, 20000]", "[1,1,1]", "f32[1, 3]");
  CHECK_FALSE(ranks(rows, with_threads()));
}
