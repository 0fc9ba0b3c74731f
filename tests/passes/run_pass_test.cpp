#include "run_pass.h"

#include <doctest/doctest.h>

#include <set>

#include "passes/pass.h"
#include "random_graph.h"

namespace tw::test {
namespace {

Graph parsed(const char* text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  Error error = verify(*graph);
  if (error) FAIL(error_text(std::move(error)));
  return std::move(*graph);
}

std::vector<Tensor> evaluated(const Graph& graph, unsigned seed) {
  Expected<std::vector<Tensor>> outputs = evaluate(graph, random_inputs(graph, seed));
  if (!outputs) FAIL(error_text(outputs.takeError()));
  return std::move(*outputs);
}

bool run_once(Graph& graph, const char* pass) {
  const Target target = baseline_target(Arch::x86_64);
  PassContext context{target};
  bool changed = false;
  RunOptions options;
  options.verify_each = true;
  options.on_pass = [&](const std::string&, double, bool result, const std::string&) {
    changed = result;
  };
  Error error = run_passes(graph, context, {pass}, options);
  if (error) FAIL(error_text(std::move(error)));
  return changed;
}

}  // namespace

void run_pass(const char* pass, const char* before, const char* after) {
  Graph graph = parsed(before), wanted = parsed(after);
  INFO(pass << " on " << before);
  std::string start = print(graph);
  std::vector<Tensor> expected = evaluated(graph, 1);
  bool changed = run_once(graph, pass);
  CHECK(print(graph) == print(wanted));
  CHECK(changed == (print(graph) != start));
  CHECK_FALSE(run_once(graph, pass));
  std::vector<Tensor> outputs = evaluated(graph, 1);
  REQUIRE(outputs.size() == expected.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    CHECK(relative_difference(expected[i], outputs[i]) < 1e-5);
}

void canonicalizes(const std::string& before, const std::string& after) {
  run_pass("canonicalize", ("graph @t() {\n" + before + "}\n").c_str(),
           ("graph @t() {\n" + after + "}\n").c_str());
}
void keeps(const std::string& body) { canonicalizes(body, body); }

}  // namespace tw::test

using namespace tw;

TEST_CASE("the default pipeline keeps what random graphs compute") {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Graph graph = test::random_graph(seed);
    std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    Expected<std::vector<Tensor>> before = evaluate(graph, inputs);
    REQUIRE(bool(before));
    std::string text = print(graph);
    CAPTURE(text);
    const Target target = baseline_target(Arch::x86_64);
    PassContext context{target};
    RunOptions options;
    options.verify_each = true;
    CHECK(error_text(run_passes(graph, context, default_pipeline(), options)) == "");
    Expected<std::vector<Tensor>> after = evaluate(graph, inputs);
    REQUIRE(bool(after));
    REQUIRE(after->size() == before->size());
    for (size_t i = 0; i < after->size(); ++i)
      CHECK(test::relative_difference((*before)[i], (*after)[i]) < 1e-4);
  }
}

TEST_CASE("no pass finds anything in a second run on random graphs") {
  for (const Pass& pass : all_passes()) {
    int changes = 0;
    for (unsigned seed = 0; seed < 250; ++seed) {
      INFO(std::string(pass.name) << " on random graph " << seed);
      Graph graph = test::random_graph(seed);
      changes += test::run_once(graph, pass.name);
      CHECK_FALSE(test::run_once(graph, pass.name));
    }
    CAPTURE(changes);
    // Random graphs have no shape arithmetic, empty tensors, attention, topk or sums of bytes, and
    // the test's target has fp32 precision.
    const std::set<std::string> idle = {"fold-empty",     "fold-shapes",      "join-products",
                                        "keep-bytes",     "narrow-products",  "rank-topk",
                                        "round-products", "zero-points-first"};
    CHECK((changes > 50 || idle.contains(pass.name)));
  }
}

TEST_CASE("the runner reports, limits, prints and refuses") {
  Graph graph = test::random_graph(7);
  const Target target = baseline_target(Arch::x86_64);
  PassContext context{target};
  std::vector<std::string> ran, titles;
  RunOptions options;
  options.limit = 7;
  options.print_after = {"canonicalize"};
  options.on_pass = [&](const std::string& pass, double seconds, bool, const std::string&) {
    CHECK(seconds >= 0);
    ran.push_back(pass);
  };
  options.print = [&](const std::string& title, const std::string& text) {
    titles.push_back(title);
    CHECK(text == print(graph));
  };
  CHECK(error_text(run_passes(graph, context, default_pipeline(), options)) == "");
  CHECK(ran == std::vector<std::string>{"eliminate-dead-code", "fold-shapes", "fold-empty",
                                        "sign-quantization", "fuse-quantization", "tabulate-bytes",
                                        "canonicalize"});
  CHECK(titles == std::vector<std::string>{"after canonicalize"});
  std::string unknown = error_text(run_passes(graph, context, {"canonicalise"}, {}));
  CHECK(unknown.find("unknown pass 'canonicalise'") != std::string::npos);
  CHECK(unknown.find("fold-batch-norm") != std::string::npos);
}

TEST_CASE("the table is sorted, and pipelines name passes that exist") {
  for (size_t i = 1; i < all_passes().size(); ++i)
    CHECK(std::string(all_passes()[i - 1].name) < all_passes()[i].name);
  for (const std::string& name : default_pipeline()) CHECK(find_pass(name) != nullptr);
  CHECK(find_pass("none") == nullptr);
}
