#include "program/fixed_sizes.h"

#include <doctest/doctest.h>

#include "ir/text.h"

using namespace tw;

namespace {

// Returns the remarks on a graph whose input x has these dims and is reshaped to each of the
// shapes.
std::string fixed(const std::string& dims, const std::vector<std::string>& shapes,
                  const SymbolLimitsOf& limits = {}) {
  std::string text = "graph @g(n, m) {\n  %x: f32[" + dims + "] = input\n", ends;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string y = "%y" + std::to_string(i);
    text += "  " + y + ": f32[" + shapes[i] + "] = reshape(%x) shape=[" + shapes[i] + "]\n";
    ends += "  output " + y + "\n";
  }
  Expected<Graph> graph = parse_graph(text + ends + "}\n");
  REQUIRE_MESSAGE(bool(graph), error_text(graph.takeError()));
  graph->limits = limits;
  std::string all;
  for (const std::string& line : fixed_sizes(*graph, {})) all += line + "\n";
  return all;
}

std::string alone(const char* symbol, int size, int node) {
  return "the free dimension '" + std::string(symbol) + "' can be " + std::to_string(size) +
         " alone: y" + std::to_string(node) + " (reshape) needs it\n";
}

}  // namespace

TEST_CASE("a free dimension that one number fits is named, with the node that needs it") {
  CHECK(fixed("n, 4", {"12"}) == alone("n", 3, 0));
  CHECK(fixed("n + 2, 4", {"12"}) == alone("n", 1, 0));
  CHECK(fixed("10 - n, 4", {"12"}) == alone("n", 7, 0));
  CHECK(fixed("n, m", {"1"}) == alone("n", 1, 0) + alone("m", 1, 0));
  CHECK(fixed("n, m + 2", {"3"}) == alone("n", 1, 0) + alone("m", 1, 0));
  CHECK(fixed("n, m", {"6"}).empty());
  CHECK(fixed("n // 2, 4", {"12"}).empty());
  CHECK(fixed("n // 2, 4", {"12"}, {{"n", {2, 64, 2}}}) == alone("n", 6, 0));
  CHECK(fixed("n, m", {"6"}, {{"m", {3, 64, 1}}}).empty());
  CHECK(fixed("n, m", {"6"}, {{"m", {4, 64, 1}}}) == alone("n", 1, 0) + alone("m", 6, 0));
}

TEST_CASE("conditions narrow sizes together; what limits say already is no news") {
  CHECK(fixed("n, m, 1", {"n, 5", "12"}) == alone("m", 5, 0));
  CHECK(fixed("n, 4", {"12"}, {{"n", {3, 3, 1}}}).empty());
  CHECK(fixed("n, 4", {"n, 2, 2"}).empty());
}
