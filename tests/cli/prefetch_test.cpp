// Default schedules prefetch some weights.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::must;

namespace {

// Returns the prefetches of [rows, depth] x [depth, columns] with 1 MiB of second-level cache.
std::vector<std::string> prefetches(int64_t rows, int64_t depth, int64_t columns, bool constant) {
  Model model;
  model.name = "product";
  Graph& g = model.graph;
  g.name = "product";
  auto dims = [](std::vector<int64_t> d) { return Shape(d.begin(), d.end()); };
  ValueId x = g.add_input("x", {DType::f32, dims({rows, depth}), {}});
  ValueId w = constant ? g.add_constant("w", Tensor::zeros(DType::f32, {depth, columns}))
                       : g.add_input("w", {DType::f32, dims({depth, columns}), {}});
  g.add_output(must(g.add(op::MatMul{}, {x, w})), "y");
  CompileOptions options;
  options.emit = Emit::scheduled;
  options.algorithms.only = Algorithm::direct;
  Target target = host_target();
  target.l2_bytes = 1 << 20;
  auto report = compile_graph(std::move(model), options, target);
  if (!report) FAIL(error_text(report.takeError()));
  std::vector<std::string> found;
  for (size_t at = report->text.find("prefetch "); at != std::string::npos;
       at = report->text.find("prefetch ", at + 1))
    found.push_back(report->text.substr(at, report->text.find('\n', at) - at));
  return found;
}

bool next_panel(const std::vector<std::string>& list) {
  return std::ranges::any_of(
      list, [](const std::string& line) { return line.find(" + 1, 0, ") != std::string::npos; });
}

}  // namespace

TEST_CASE(
    "the next panel of weights is asked for where a panel is used again and two fit the "
    "second-level cache") {
  CHECK(next_panel(prefetches(128, 256, 512, true)));
  // These tiles and panels do not divide the extents.
  CHECK(next_panel(prefetches(50, 100, 1000, true)));
  CHECK_FALSE(next_panel(prefetches(2, 256, 512, true)));      // one tile of rows
  CHECK_FALSE(next_panel(prefetches(128, 40000, 256, true)));  // a panel too large
  CHECK(prefetches(128, 40000, 256, true).size() == 1);        // it prefetches some rows even so
  CHECK(prefetches(1, 256, 512, true).empty());     // one row waits for its weights anyway
  CHECK(prefetches(128, 256, 512, false).empty());  // the weights were packed just before
}
