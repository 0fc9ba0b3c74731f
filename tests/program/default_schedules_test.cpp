// A default schedule that does not apply: the plain one takes its place, and somebody hears of it.
#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "ir/text.h"
#include "program/schedules.h"

using namespace tw;

namespace {

// A product of free rows whose reader wraps them, so that no tile of its sums has a known extent.
LoweredGroup wrapped_product() {
  Expected<Kernel> kernel = parse_kernel(
      R"(kernel @product[n](x: in f32[n, 32], w: const f32[1, 32, 64], y: out f32[n, 40]) {
    temp acc: f32[(n + 7) // 8 * 8, 64]
    for ai in (n + 7) // 8 * 8 { for aj in 64 { for k in 32 reduce {
      acc: acc[ai, aj] += x[min(ai, n - 1), k] * w[0, k, aj] init 0.0
    } } }
    for i in n { for j in 40 { y: y[i, j] = acc[(i * 3) % n, j] } }
  })");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  LoweredGroup lowered;
  lowered.kernel = std::move(*kernel);
  lowered.stages = MatMulStages{};
  return lowered;
}

}  // namespace

TEST_CASE("a default schedule that does not apply is a fault, and the plain one is used") {
  const LoweredKernel kernel{wrapped_product()};
  const Target target = host_target();
  const ModelSchedules schedules;
  Expected<ChosenSchedule> chosen = schedules.choose(kernel, target);
  REQUIRE_MESSAGE(bool(chosen), error_text(chosen.takeError()));
  CHECK(chosen->fault.find("must be a constant") != std::string::npos);
  Expected<ScheduleRemarks> remarks = schedules.review({kernel}, {*chosen});
  REQUIRE(bool(remarks));
  REQUIRE(remarks->faults.size() == 1);
  CHECK(remarks->faults.front().find("kernel product: the default schedule does not apply") == 0);
}
