#include "tests/passes/random_graph.h"

#include <doctest/doctest.h>

TEST_CASE("random graphs verify and evaluate") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    tw::Graph graph = tw::test::random_graph(seed);
    CHECK(tw::error_text(tw::verify(graph)) == "");
    llvm::Expected<std::vector<tw::Tensor>> outputs = tw::evaluate(
        graph, tw::test::random_inputs(graph, seed));
    REQUIRE(bool(outputs));
    CHECK(outputs->size() == graph.outputs().size());
  }
}
