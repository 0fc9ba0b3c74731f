// Two compiled models timed against each other in processes of their own.
#include <doctest/doctest.h>
#include <llvm/TargetParser/Host.h>

#include <cmath>
#include <fstream>

#include "driver/compare/compare_artifacts.h"
#include "driver/compile/compile.h"
#include "support/temporary_folder.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::must, test::seeded_tensor;

namespace {

// Compiles a chain of products of n x n matrices for the baseline of this machine's architecture.
void compile_chain(int64_t n, const std::string& output) {
  Model model;
  Graph& g = model.graph;
  g.name = model.name = "chain";
  ValueId y = g.add_input("x", {DType::f32, {Expr(n), Expr(n)}, {}});
  for (uint64_t i = 0; i < 2; ++i)
    y = must(g.add(op::MatMul{}, {y, g.add_constant("w", seeded_tensor({n, n}, i))}));
  g.add_output(y, "y");
  CompileOptions options;
  options.output = output;
  options.name = "chain";
  auto report = compile_graph(
      std::move(model), options,
      baseline_target(arch_from_triple(llvm::sys::getProcessTriple()).value_or(Arch::x86_64)));
  REQUIRE_MESSAGE(bool(report), error_text(report.takeError()));
}

CompareOptions quick(int processes) {
  CompareOptions options;
  options.processes = processes;
  options.seconds = 0.02;
  return options;
}

}  // namespace

TEST_CASE("compare: times, a ratio and its interval") {
  Expected<TemporaryFolder> folder = TemporaryFolder::create();
  REQUIRE_MESSAGE(bool(folder), error_text(folder.takeError()));
  const std::string small = folder->path() + "/small.so", large = folder->path() + "/large.so";
  compile_chain(8, small);
  compile_chain(128, large);
  Expected<Comparison> got = compare_artifacts(large, small, quick(6));
  REQUIRE_MESSAGE(bool(got), error_text(got.takeError()));
  CHECK(got->first_ms > 0);
  CHECK(got->second_ms > 0);
  CHECK(got->interval.low <= got->ratio);
  CHECK(got->ratio <= got->interval.high);
  CHECK(std::isfinite(got->interval.high));
  CHECK(got->second_is_faster());  // the first does four thousand times the work
  CHECK_FALSE(got->first_is_faster());

  Expected<Comparison> few = compare_artifacts(small, small, quick(1));
  REQUIRE_MESSAGE(bool(few), error_text(few.takeError()));
  CHECK_FALSE(few->second_is_faster());  // no interval: no claim
  CHECK_FALSE(few->first_is_faster());
}

TEST_CASE("compare: what cannot be loaded is an error") {
  Expected<TemporaryFolder> folder = TemporaryFolder::create();
  REQUIRE_MESSAGE(bool(folder), error_text(folder.takeError()));
  const std::string nothing = folder->path() + "/nothing.so", text = folder->path() + "/text.so";
  std::ofstream(text) << "no library";
  CHECK(error_text(compare_artifacts(nothing, nothing, quick(1)).takeError()).find("nothing.so") !=
        std::string::npos);
  CHECK(!error_text(compare_artifacts(text, text, quick(1)).takeError()).empty());
  CompareOptions options = quick(1);
  options.program = "/bin/false";
  CHECK(error_text(compare_artifacts(text, text, options).takeError()).find("failed") !=
        std::string::npos);
}
