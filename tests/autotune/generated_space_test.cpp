// Points of the generated space on kernels that call for the target's instructions, copies of
// operands, or chains of transforms.
#include <doctest/doctest.h>

#include "autotune/space.h"
#include "frontend/frontend.h"
#include "kernels/arranged.h"
#include "tests/autotune/kernels.h"
#include "tests/ir/parsed.h"

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

// A target whose i8 instructions take two rows.
const char* const kRows = R"(
name: rows
triple: aarch64-linux-gnu
features: [neon, dotprod, i8mm]
)";

const GraphCase kOddRows = {"int8 matmul of odd rows",
                            "%x: i8[13, 40] = input\n%w: i8[40, 24] = input",
                            "%y: i32[13, 24] = matmul(%x, %w)"};

using Steps = std::function<bool(const Schedule&)>;

Steps with_instruction(const std::string& instruction) {
  return [instruction](const Schedule& schedule) {
    return std::ranges::any_of(schedule.steps, [&](const Step& step) {
      const auto* tensorize = std::get_if<step::Tensorize>(&step);
      return tensorize && tensorize->intrinsic.starts_with(instruction);
    });
  };
}

bool packs(const Schedule& schedule) {
  return std::ranges::any_of(schedule.steps, [&](const Step& step) {
    return std::holds_alternative<step::CacheRead>(step);
  });
}

// True if the schedule fuses blocks over the tiles of two loops of the last stage and keeps the
// sums of each block in registers.
bool fuses_blocks(const Schedule& schedule) {
  bool fuses = false, sums = false;
  for (const Step& step : schedule.steps) {
    if (const auto* fuse = std::get_if<step::Fuse>(&step)) fuses |= fuse->fused.starts_with("y_f");
    if (const auto* at = std::get_if<step::ComputeAt>(&step)) sums |= at->stage == "acc_sum";
  }
  return fuses && sums;
}

// Counts the legal points among `samples` random ones whose steps are wanted. Each must compute
// what the kernel does.
int right_points(const Task& task, const Target& target, bool rules, int samples,
                 const Steps& wanted) {
  Expected<Space> space = search_space(task, target, {rules, SketchSource::generated});
  if (!space) FAIL(error_text(space.takeError()));
  std::mt19937_64 random(3);
  int found = 0;
  for (int i = 0; i < samples; ++i) {
    const Point point = space->sample(random);
    const int variant = space->sketches()[static_cast<size_t>(point.sketch)].variant;
    const Kernel& kernel = task.variants[static_cast<size_t>(variant)].lowered.kernel;
    Expected<Schedule> schedule = space->schedule(point);
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    if (!wanted(*schedule)) continue;
    CAPTURE(print(*schedule));
    Expected<Kernel> scheduled = apply(kernel, *schedule, &target);
    REQUIRE_MESSAGE(bool(scheduled), error_text(scheduled.takeError()));
    const Kernel defined = require_value(apply(
        kernel,
        require_value(laid_out(task.variants[static_cast<size_t>(variant)].lowered, target))));
    std::vector<KernelArgument> expected = random_arguments(defined, 1, 7), got = expected;
    REQUIRE(error_text(interpret(defined, expected)) == "");
    REQUIRE(error_text(interpret(*scheduled, got)) == "");
    REQUIRE(difference(kernel, expected, got) == "");
    for (size_t argument = 0; argument < got.size(); ++argument)
      if (!is_float(kernel.buffers[argument].dtype))
        REQUIRE(got[argument].bytes == expected[argument].bytes);
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("generated spaces take the target's instructions, an unknown one's too, and are exact") {
  struct Case {
    const GraphCase& graph;
    const char *yaml, *instruction;
  };
  for (const auto& [graph, yaml, instruction] :
       {Case{kBytes, kShipped, "x86.pmaddwd.256"}, Case{kBytes, kUnknown, "test.dot"},
        Case{kOddRows, kRows, "aarch64.smmla"}}) {
    Expected<Target> target = parse_target(yaml, "target.yaml");
    if (!target) FAIL(error_text(target.takeError()));
    const std::vector<Task> tasks = tasks_of_case(graph, *target);
    for (const bool rules : {false, true}) {
      CAPTURE(std::string(instruction));
      CAPTURE(rules);
      CHECK(right_points(tasks[0], *target, rules, 600, with_instruction(instruction)) > 5);
    }
  }
}

TEST_CASE("generated spaces copy what tiles read of operands, in panels and at any loop around") {
  const GraphCase cases[] = {
      {"batched matmul", "%x: f32[3, 24, 20] = input\n%z: f32[3, 20, 32] = input",
       "%y: f32[3, 24, 32] = matmul(%x, %z)"},
      {"matmul", "%x: f32[16, 32] = input\n%w: f32[32, 64] = input",
       "%y: f32[16, 64] = matmul(%x, %w)"},
      {"conv 3x3", "%x: f32[1, 8, 5, 6] = input\n%w: f32[8, 8, 3, 3] = input",
       "%y: f32[1, 8, 5, 6] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]"},
      {"attention",
       "%q: f32[1, 2, 12, 16] = input\n%k: f32[1, 2, 20, 16] = input\n%v: f32[1, 2, 20, 16] = "
       "input",
       "%a: f32[1, 2, 12, 20] = matmul(%q, %k) trans_b=true\n%p: f32[1, 2, 12, 20] = softmax(%a) "
       "axis=3\n%y: f32[1, 2, 12, 16] = matmul(%p, %v)"}};
  const Target target = vector_target(256);
  for (const GraphCase& c : cases) {
    for (const bool rules : {false, true}) {
      CAPTURE(std::string(c.name));
      CAPTURE(rules);
      const int found = right_points(tasks_of_case(c, target)[0], target, rules, 120, packs);
      CHECK(found > 5);
    }
  }
}

TEST_CASE("generated spaces make a Winograd convolution in blocks of a fused loop of tiles") {
  const GraphCase chain = {
      "conv 3x3 twice", "%x: f32[1, 16, 9, 10] = input\n%w: f32[16, 16, 3, 3] = input",
      "%a: f32[1, 16, 9, 10] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]\n%b: "
      "f32[1, 16, 9, 10] = unary(%a) function=tanh\n%y: f32[1, 16, 9, 10] = conv(%b, %w) "
      "strides=[1,1] dilations=[1,1] pads=[1,1,1,1]"};
  const Target target = vector_target(256);
  Task winograd;
  for (const Task& task : tasks_of_case(chain, target))
    for (const Variant& variant : task.variants)
      if (variant.algorithm == Algorithm::winograd_f2) winograd.variants = {variant};
  REQUIRE(winograd.variants.size() == 1);
  for (const bool rules : {false, true}) {
    CAPTURE(rules);
    CHECK(right_points(winograd, target, rules, 300, fuses_blocks) > 2);
  }
}
