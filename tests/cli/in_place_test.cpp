// Compiled networks whose outputs take the memory of residuals, on one thread and on several.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"
#include "tests/passes/random_graph.h"

using namespace tw;
using test::conv_attrs, test::must, test::seeded_tensor;

namespace {

// Bottlenecks with their inputs added. Depending on the size, pixels make whole tiles or not.
Graph residual_network(int64_t height, int64_t width, int64_t channels) {
  Graph g;
  g.name = "residuals";
  uint64_t seed = 1;
  auto conv = [&](ValueId x, int64_t in, int64_t out, int64_t kernel) {
    const Tensor w = seeded_tensor({out, in, kernel, kernel}, seed++,
                                   std::sqrt(3.0 / static_cast<double>(in * kernel * kernel)));
    return must(g.add(conv_attrs(kernel / 2), {x, g.add_constant("w" + std::to_string(seed), w)}));
  };
  ValueId x = conv(
      g.add_input("x", {DType::f32, {Expr(1), Expr(3), Expr(height), Expr(width)}, {}}), 3,
      channels, 1);
  for (int block = 0; block < 3; ++block)
    x = must(g.add(op::Binary{BinaryOp::add},
                   {conv(conv(x, channels, channels / 2, 3), channels / 2, channels, 1), x}));
  g.add_output(conv(x, channels, 8, 1), "y");
  return g;
}

}  // namespace

TEST_CASE("residuals in place, compiled, equal the reference") {
  const Target target = host_target();
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{28, 28}, {13, 11}, {7, 7}}) {
    CAPTURE(height);
    const Graph graph = residual_network(height, width, 64);
    const std::vector<Tensor> inputs = {seeded_tensor({1, 3, height, width}, 9)};
    auto expected = evaluate(graph, inputs);
    REQUIRE(bool(expected));
    for (int threads : {1, 3}) {
      const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, threads);
      CHECK(test::relative_difference((*expected)[0], got[0]) < 1e-5);
    }
  }
}
