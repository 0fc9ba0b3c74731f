// Convolutions over rows of free extent: whole tiles in registers without conditions, and the last
// tile of a row apart.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "tests/cli/cli_test_util.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::conv_attrs, test::must;

namespace {

// Compiles a 1x1 convolution into blocked channels and then the convolution under test, with x [1,
// 4, 16, w]. Returns the text of its loops.
std::string scheduled(int64_t channels, int64_t kernel, int64_t stride, int64_t groups) {
  Graph g;
  g.name = "layer";
  g.symbols = {"w"};
  const ValueId x = g.add_input("x", {DType::f32, {Expr(1), Expr(4), Expr(16), var("w")}, {}});
  const ValueId a = must(g.add(
      conv_attrs(0), {x, g.add_constant("w0", Tensor::zeros(DType::f32, {channels, 4, 1, 1}))}));
  const Tensor weights = Tensor::zeros(DType::f32, {channels, channels / groups, kernel, kernel});
  g.add_output(
      must(g.add(conv_attrs(kernel / 2, stride, groups), {a, g.add_constant("w1", weights)})), "y");
  Model model;
  model.graph = std::move(g);
  model.name = "layer";
  CompileOptions options;
  options.emit = Emit::scheduled;
  auto report = compile_graph(std::move(model), options, host_target());
  if (!report) FAIL(error_text(report.takeError()));
  CHECK(report->faults.empty());
  // The text ends with the kernel that writes the output in plain layout.
  return report->text.substr(report->text.rfind("temp acc"));
}

}  // namespace

TEST_CASE("a free row goes in whole tiles whose sums ask for nothing, nor do stores") {
  struct Case {
    int64_t kernel, stride, groups;
  };
  for (const Case& c :
       {Case{1, 1, 1}, Case{3, 1, 1}, Case{3, 2, 1}, Case{1, 2, 1}, Case{3, 1, 64}}) {
    CAPTURE(c.kernel);
    CAPTURE(c.stride);
    CAPTURE(c.groups);
    const std::string text = scheduled(64, c.kernel, c.stride, c.groups);
    const size_t tiles = text.find("for w0 in"), last = text.find("_z in", tiles);
    REQUIRE_MESSAGE(tiles != std::string::npos, text);
    REQUIRE_MESSAGE(last != std::string::npos, text);
    const std::string whole = text.substr(tiles, last - tiles);
    // With stride 2 the extent is half of w, rounded up. simplify does not see that a whole tile
    // lies within it.
    if (c.stride == 1) CHECK_MESSAGE(whole.find("if ") == std::string::npos, whole);
    CHECK_MESSAGE(whole.find("where ") == std::string::npos, whole);
    CHECK_MESSAGE(whole.find("unroll") != std::string::npos, whole);
  }
}
