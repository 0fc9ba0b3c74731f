// bench --plan: shares, imbalance and fork-joins on a machine that is not at hand.
#include "cli/text/thread_plan.h"

#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "ir/kernel/shared_loop.h"
#include "ir/text.h"
#include "tests/cli/cli_test_util.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

Manifest manifest_of(std::vector<ManifestCall> calls) {
  Manifest m;
  m.kernels = {{"a_0", ""}};
  m.calls = std::move(calls);
  return m;
}

ManifestCall call_of(const char* operations, std::vector<ManifestLoop> loops) {
  ManifestCall call;
  call.name = "call";
  call.operations = operations;
  call.loops = std::move(loops);
  return call;
}

}  // namespace

TEST_CASE("a plan counts the largest share of each loop, what stays alone, and the joins") {
  // 30 iterations on 16 threads: the largest share is two. A tenth of the work is not shared.
  const Manifest m = manifest_of({call_of("1000", {{"30", "100", "1", "900"}}),
                                  call_of("n * 10", {{"n", "3", "2", "n * 10"}}),
                                  call_of("50", {{"30", "1", "1", "50"}})});
  Target target = host_target();
  target.cores = 2;
  target.core.fork_join = 2e-6;
  Expected<ThreadPlan> plan = thread_plan(m, {{"n", 8}}, target, 16, {1, 4, 0.5});
  REQUIRE_MESSAGE(bool(plan), error_text(plan.takeError()));
  CHECK(plan->calls[0].joins == 1);
  CHECK(plan->calls[0].busy == 16);
  CHECK(plan->calls[0].largest == doctest::Approx(0.1 + 0.9 * 2 / 30));
  CHECK(plan->calls[0].planned_ms == doctest::Approx(0.16 + 0.002));
  // Three parts of eight iterations, entered twice
  CHECK(plan->calls[1].joins == 2);
  CHECK(plan->calls[1].busy == 3);
  CHECK(plan->calls[1].planned_ms == doctest::Approx(4 * 3.0 / 8 + 0.004));
  // The work is too little for two parts.
  CHECK(plan->calls[2].joins == 0);
  CHECK(plan->calls[2].planned_ms == doctest::Approx(0.5));
  CHECK(plan->joins() == 3);
  const std::string text = to_string(*plan);
  CHECK(text.find("on 16 threads") != std::string::npos);
  CHECK(text.find("made for 2 cores") != std::string::npos);

  plan = thread_plan(m, {{"n", 8}}, target, 1, {1, 4, 0.5});
  REQUIRE(bool(plan));
  CHECK(plan->joins() == 0);
  CHECK(plan->planned_ms() == doctest::Approx(plan->one_ms()));
}

TEST_CASE("a library that does not say what is shared is refused") {
  const Manifest m = manifest_of({call_of("", {})});
  Expected<ThreadPlan> plan = thread_plan(m, {}, host_target(), 4, {1});
  REQUIRE(!plan);
  CHECK(error_text(plan.takeError()).find("compile it again") != std::string::npos);
}

TEST_CASE("shared work: loops of few iterations with the one inside, parts by the kernel's work") {
  Expected<Kernel> kernel = parse_kernel(
      "kernel @k(x: in f32[4, 1000, 8], y: out f32[4, 1000, 8]) {\n"
      "  for i in 4 parallel { for j in 1000 { for l in 8 vector {\n"
      "    y: y[i, j, l] = x[i, j, l] * 2.0 } } }\n}\n",
      "k");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  const Target target = host_target();
  const SharedWork all = shared_work(*kernel, count_work(*kernel), target, 0);
  REQUIRE(all.loops.size() == 1);
  CHECK(as_const(all.loops[0].iterations) == 4000);
  CHECK(as_const(all.loops[0].entries) == 1);
  CHECK(as_const(all.operations) == 32000 * 3);
  CHECK(as_const(all.loops[0].operations) == 32000 * 3);
  // The work takes less than two microseconds.
  CHECK(as_const(shared_work(*kernel, count_work(*kernel), target).loops[0].most_parts) == 1);
}

TEST_CASE("bench --plan: one thread runs, any number is planned for") {
  const TestFolder folder;
  const std::string library = folder / "d.so";
  REQUIRE(cli({"compile", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-o", library}).code ==
          kExitOk);
  const CliResult r = cli(
      {"bench", library, "--threads", "64", "--plan", "--seconds", "0.05", "--json"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.err);
  Expected<Json> told = parse_json(r.out, "out");
  REQUIRE(bool(told));
  CHECK((*told)["threads"].integer_or(0) == 1);
  const Json& plan = (*told)["plan"];
  CHECK(plan["threads"].integer_or(0) == 64);
  CHECK(plan["calls"].items().size() >= 6);
  CHECK(plan["one_ms"].number_or(0) > 0);
}
