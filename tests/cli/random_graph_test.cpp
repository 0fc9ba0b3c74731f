// Random graphs, compiled for this host, equal their reference evaluation. This tests passes,
// fusion, lowering, schedules, the memory plan and code generation together. TW_SEED=N sets the
// first seed, TW_ROUNDS=N the number of graphs.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/cli/compiled.h"
#include "tests/passes/random_graph.h"

static unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST_CASE("random graphs, compiled, equal their reference evaluation") {
  tw::Target host = tw::host_target();
  unsigned first = setting("TW_SEED", 1), rounds = setting("TW_ROUNDS", 25);
  for (unsigned seed = first; seed < first + rounds; ++seed) {
    INFO("TW_SEED=" << seed);
    tw::Graph graph = tw::test::random_graph(seed);
    std::vector<tw::Tensor> inputs = tw::test::random_inputs(graph, seed);
    auto expected = tw::evaluate(graph, inputs);
    REQUIRE(bool(expected));
    std::vector<tw::Tensor> got = tw::test::run_compiled(graph, inputs, *expected, host,
                                                         1 + static_cast<int>(seed % 2));
    for (size_t i = 0; i < got.size(); ++i) {
      INFO("output " << i);
      CHECK(tw::test::relative_difference((*expected)[i], got[i]) < 1e-4);
    }
  }
}
