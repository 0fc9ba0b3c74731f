// Records of kernels that were lowered with their operands arranged serve the present ones.
#include "autotune/earlier_records.h"

#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "tests/autotune/kernels.h"

using namespace tw;
using namespace tw::test;

TEST_CASE("records: those of earlier kernels make the same kernels of the present ones") {
  const Target target = vector_target(256);
  const GraphCase product{"product", "%x: f32[5, 24] = input\n%w: f32[24, 40] = input",
                          "%y: f32[5, 40] = matmul(%x, %w)"};
  const Task task = tasks_of_case(product, target).front();
  const LoweredGroup& lowered = task.variants.front().lowered;
  Expected<LoweredGroup> before = arranged_group(lowered, target);
  REQUIRE_MESSAGE(bool(before), error_text(before.takeError()));
  Expected<Schedule> schedule = default_schedule(*before, target);
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Record earlier;
  earlier.kernel_hash = definition_hash(*before), earlier.schedule = print(*schedule);
  Record broken = earlier, foreign = earlier, own = earlier;
  broken.schedule = "no schedule";
  foreign.kernel_hash = "0123456789abcdef";
  own.kernel_hash = definition_hash(lowered);
  const std::vector<Record> present = present_records({earlier, broken, foreign, own}, task,
                                                      target);
  REQUIRE(present.size() == 4);
  CHECK(present[0].kernel_hash == definition_hash(lowered));
  CHECK(present[1].kernel_hash == earlier.kernel_hash);
  CHECK(present[2].kernel_hash == foreign.kernel_hash);
  CHECK(present[3].schedule == own.schedule);
  Expected<Schedule> usual = default_schedule(lowered, target);
  REQUIRE(bool(usual));
  CHECK(present[0].schedule == print(*usual));
  Expected<Schedule> whole = parse_schedule(present[0].schedule);
  REQUIRE(bool(whole));
  Expected<RunKernel> now = apply_to_run(lowered.kernel, *whole, &target);
  REQUIRE_MESSAGE(bool(now), error_text(now.takeError()));
  Expected<RunKernel> then = apply_to_run(before->kernel, *schedule, &target);
  REQUIRE(bool(then));
  CHECK(print(now->kernel) == print(then->kernel));
}
