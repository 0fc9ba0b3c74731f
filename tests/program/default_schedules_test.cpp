// If a default schedule does not apply, the plain one takes its place, and the compile reports it.
#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "ir/text.h"
#include "kernels/schedule/builder.h"
#include "program/schedules.h"

using namespace tw;

namespace {

// Always the same chip, because the tiles depend on its registers
Target described() {
  Expected<Target> target = load_target("x86-64-v4", {std::string(TW_SOURCE_DIR) + "/configs"});
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  return std::move(*target);
}

// A product of free rows whose reader wraps them, so that no tile of its sums has a known extent.
LoweredGroup wrapped_product(const Target& target) {
  Expected<Kernel> kernel = parse_kernel(
      R"(kernel @product[n](x: in f32[n, 32], w: const f32[1, 32, 64], y: out f32[n, 40]) {
    temp acc: f32[(n + 7) // 8 * 8, 64]
    for ai in (n + 7) // 8 * 8 { for aj in 64 { for k in 32 reduce {
      acc: acc[ai, aj] += x[min(ai, n - 1), k] * w[0, k, aj] init 0.0
    } } }
    for i in n { for j in 40 { y: y[i, j] = acc[(i * 3) % n, j] } }
  })");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  const ScheduleBuilder as_lowered(*kernel, target);
  const Stages stages = as_lowered.stages();
  const Loops sum = as_lowered.loops_of(stages[0]), y = as_lowered.loops_of(stages[1]);
  MatMulStages m;
  m.arranged = true;
  m.weights = as_lowered.name_of(*kernel->find_buffer("w"));
  m.panel = 64;
  m.acc = stages[0], m.acc_row = sum[0], m.acc_column = sum[1], m.depth = {sum[2]};
  m.y = {stages[1], {}, y[0], y[1]};
  LoweredGroup lowered;
  lowered.kernel = std::move(*kernel);
  lowered.stages = std::move(m);
  return lowered;
}

}  // namespace

TEST_CASE("a default schedule that does not apply is a fault, and the plain one is used") {
  const Target target = described();
  const LoweredKernel kernel{wrapped_product(target)};
  const ModelSchedules schedules;
  Expected<ChosenSchedule> chosen = schedules.choose(kernel, target);
  REQUIRE_MESSAGE(bool(chosen), error_text(chosen.takeError()));
  CHECK(chosen->fault.find("must be a constant") != std::string::npos);
  Expected<ScheduleRemarks> remarks = schedules.review({kernel}, {*chosen});
  REQUIRE(bool(remarks));
  REQUIRE(remarks->faults.size() == 1);
  CHECK(remarks->faults.front().find("kernel product: the default schedule does not apply") == 0);
}

#ifndef TW_VERIFY_EACH  // with checks after each step, the illegal kernel would end the program
TEST_CASE("no schedule makes a legal kernel of one that stores another type than it declares") {
  const Target target = described();
  LoweredKernel kernel{wrapped_product(target)};
  for (Buffer& buffer : kernel.lowered.kernel.buffers)
    if (buffer.name == "acc") buffer.dtype = DType::i32;
  const std::string reason = "the kernel is not legal: kernel @product: stage 'acc': the value";
  Expected<ChosenSchedule> chosen = ModelSchedules().choose(kernel, target);
  REQUIRE_FALSE(bool(chosen));
  CHECK(error_text(chosen.takeError()).find(reason) != std::string::npos);
  Expected<Kernel> unchanged = apply(kernel.lowered.kernel, Schedule{}, &target);
  REQUIRE_FALSE(bool(unchanged));
  CHECK(error_text(unchanged.takeError()).find("after step 0: " + reason) == 0);
}
#endif
