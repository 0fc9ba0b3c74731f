// If a default schedule does not apply, the plain one takes its place, and the compile reports it.
#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "ir/text.h"
#include "kernels/default_schedule.h"
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

// The kernel that the default schedule makes of a copy.
static std::string copied(const std::string& parameters, const std::string& body) {
  const Target target = described();
  Expected<Kernel> kernel = parse_kernel("kernel @copy(" + parameters + ") {\n" + body + "\n}");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  LoweredGroup lowered;
  lowered.kernel = std::move(*kernel);
  lowered.stages = ElementwiseStages{};
  Expected<ScheduledKernel> made = default_kernel(lowered, target);
  REQUIRE_MESSAGE(bool(made), error_text(made.takeError()));
  return print(made->run.kernel);
}

static bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a copy that reads along another loop is transposed block by block") {
  const std::string text = copied("x: in f32[64, 48], y: out f32[48, 64]",
                                  "for i in 48 { for j in 64 { y: y[i, j] = x[j, i] } }");
  CHECK(has(text, "for i_v in 16 unroll"));
  CHECK(has(text, "for j_v in 16 vector"));
}

TEST_CASE("a row that writes each element twice does so in pairs of vectors") {
  const std::string text = copied("x: in f32[8, 32], y: out f32[8, 64]",
                                  "for i in 8 { for j in 64 { y: y[i, j] = x[i, j // 2] } }");
  CHECK(has(text, "for j_f in 2 unroll"));
  CHECK(has(text, "for j_v in 16 vector"));
  CHECK(!has(text, "//"));
}

TEST_CASE("a row is cut where it repeats what it reads") {
  const std::string text = copied("x: in f32[8, 32], y: out f32[8, 64]",
                                  "for i in 8 { for j in 64 { y: y[i, j] = x[i, j % 32] } }");
  CHECK(has(text, "for j_r_v in 16 vector"));
  CHECK(has(text, "= x[y_p // 2, j_r_o * 16 + j_r_v]"));
}

TEST_CASE("the ends of a row that come from elsewhere are cut off") {
  const std::string text = copied(
      "x: in f32[8, 64], y: out f32[8, 66]",
      "for i in 8 { for j in 66 { y: y[i, j] = x[i, min(max(j - 1, 0), 63)] } }");
  CHECK(has(text, "y.a: y["));
  CHECK(has(text, "y.z: y["));
  CHECK(has(text, "for j_v in 16 vector"));
  CHECK(has(text, "= x[i, j_v + min(j_o * 16, 47) + 1]"));
}
