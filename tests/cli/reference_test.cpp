// The compiled f64 reference equals the evaluators in f64, up to f64's rounding. `verify` relies on
// it for models too large to evaluate.
#include <doctest/doctest.h>

#include "driver/run/reference.h"
#include "passes/passes.h"
#include "tests/cli/compiled.h"
#include "tests/passes/random_graph.h"

using namespace tw;

TEST_CASE("the compiled f64 reference equals evaluation in f64") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Graph graph = test::random_graph(seed);
    const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    Model model;
    model.graph = graph;
    model.name = "reference";
    auto got = reference_outputs(ReferenceKind::f64, model, {inputs, {}}, host_target());
    if (!got) FAIL(error_text(got.takeError()));

    Graph wide = graph;
    Target target;
    PassContext context{target};
    REQUIRE(error_text(run_passes(wide, context, {"widen-floats"})) == "");
    std::vector<Tensor> doubles;
    for (const Tensor& tensor : inputs) doubles.push_back(widened(tensor));
    auto expected = evaluate(wide, doubles);
    REQUIRE(bool(expected));
    REQUIRE(got->size() == expected->size());
    for (size_t i = 0; i < got->size(); ++i)
      CHECK(test::relative_difference((*expected)[i], (*got)[i]) < 1e-12);
  }
}
