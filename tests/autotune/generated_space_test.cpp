// What points of the generated space hold on kernels that ask for it: instructions of the target.
#include <doctest/doctest.h>

#include "autotune/space.h"
#include "frontend/frontend.h"
#include "tests/autotune/kernels.h"

using namespace tw;
using namespace tw::test;

namespace {

const GraphCase kBytes = {"int8 matmul", "%x: u8[12, 40] = input\n%w: i8[40, 32] = input",
                          "%y: i32[12, 32] = matmul(%x, %w)"};

const char* const kShipped = R"(
name: shipped
triple: x86_64-linux-gnu
features: [avx, avx2, fma]
vector_bits: 256
vector_registers: 16
)";

const char* const kUnknown = R"(
name: unknown
triple: x86_64-linux-gnu
features: [avx, avx2, fma]
vector_bits: 256
vector_registers: 16
without_intrinsics: [x86.pmaddwd.256, x86.pmaddwd.256.i8, x86.pmaddwd.256.u8,
                     x86.pmaddwd.128, x86.pmaddwd.128.i8, x86.pmaddwd.128.u8]
intrinsics:
  - name: test.dot
    features: [avx2]
    rate: 1
    semantics: |
      kernel @dot(a: in u8[4], b: in i8[32], c: out i32[8]) {
        for i in 8 { for k in 4 reduce { c: c[i] += i32(a[k]) * i32(b[i * 4 + k]) } }
      }
    emit: asm("vpdpbusd $2, $1, $0", "=v,v,v,0", a, b, c)
)";

bool uses(const Schedule& schedule, const std::string& instruction) {
  return std::ranges::any_of(schedule.steps, [&](const Step& step) {
    const auto* tensorize = std::get_if<step::Tensorize>(&step);
    return tensorize && tensorize->intrinsic.starts_with(instruction);
  });
}

// Legal points with the instruction, of so many samples; each is exact.
int exact_points(const Task& task, const Target& target, bool rules, const char* instruction) {
  Expected<Space> space = generated_space(task, target, {rules});
  if (!space) FAIL(error_text(space.takeError()));
  const Kernel& kernel = task.variants[0].lowered.kernel;
  const std::vector<KernelArgument> inputs = random_arguments(kernel, 1, 7);
  std::vector<KernelArgument> expected = inputs;
  REQUIRE(error_text(interpret(kernel, expected)) == "");
  std::mt19937_64 random(3);
  int found = 0;
  for (int i = 0; i < 400; ++i) {
    Expected<Schedule> schedule = space->schedule(space->sample(random));
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    if (!uses(*schedule, instruction)) continue;
    CAPTURE(print(*schedule));
    Expected<Kernel> scheduled = apply(kernel, *schedule, &target);
    REQUIRE_MESSAGE(bool(scheduled), error_text(scheduled.takeError()));
    std::vector<KernelArgument> got = inputs;
    REQUIRE(error_text(interpret(*scheduled, got)) == "");
    for (size_t argument = 0; argument < got.size(); ++argument)
      REQUIRE(got[argument].bytes == expected[argument].bytes);
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("generated spaces take the target's instructions, an unknown one's too, and are exact") {
  for (const auto& [yaml, instruction] :
       {std::pair{kShipped, "x86.pmaddwd.256"}, std::pair{kUnknown, "test.dot"}}) {
    Expected<Target> target = parse_target(yaml, "target.yaml");
    if (!target) FAIL(error_text(target.takeError()));
    const std::vector<Task> tasks = tasks_of_case(kBytes, *target);
    for (const bool rules : {false, true}) {
      CAPTURE(std::string(instruction));
      CAPTURE(rules);
      CHECK(exact_points(tasks[0], *target, rules, instruction) > 5);
    }
  }
}
