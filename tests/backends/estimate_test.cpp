// Estimates for processors that are not at hand. The estimated number of instructions is compared
// with the number that qemu runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/backends/harness.h"
#include "tests/linked_kernel.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

Target cortex(const std::string& cpu) {
  Target target = baseline_target(Arch::aarch64);
  target.cpu = cpu, target.name = cpu;
  return target;
}

Target riscv() {
  Target target = baseline_target(Arch::riscv64);
  target.cpu = target.name = "spacemit-x60";
  target.features.emplace_back("v");
  return target;
}

Kernel kernel_of(const char* text) {
  Expected<Kernel> kernel = parse_kernel(text, "test");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  return std::move(*kernel);
}

KernelEstimate estimate_of(const Target& target, const Kernel& kernel) {
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<KernelEstimate> estimate = (*backend)->estimate(kernel, ProcessorModel::own);
  REQUIRE_MESSAGE(bool(estimate), error_text(estimate.takeError()));
  return *estimate;
}

std::string refusal_of(const Target& target, const Kernel& kernel) {
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<KernelEstimate> estimate = (*backend)->estimate(kernel, ProcessorModel::own);
  REQUIRE(!estimate);
  return error_text(estimate.takeError());
}

int64_t number_of(const std::string& path) {
  int64_t number = -1;
  std::ifstream(path) >> number;
  return number;
}

// Returns the number of instructions that qemu runs for `times` calls, one a line of its log; -1 if
// qemu fails.
int64_t count_under_qemu(const TestFolder& folder, const std::string& symbol, int times) {
  const std::string log = folder / "count";
  const std::string command =
      "qemu-aarch64 -cpu max -singlestep -d exec,nochain -L "
      "/usr/aarch64-linux-gnu " +
      (folder / "runner") + " " + (folder / "kernel.so") + " " + symbol + " " +
      std::to_string(times) + " 2>&1 | grep -c ^Trace > " + log;
  return std::system(command.c_str()) == 0 ? number_of(log) : -1;
}

// Returns nullopt, with a message, if there is no libc or no qemu.
std::optional<double> instructions_under_qemu(const Target& target, const Kernel& kernel) {
  const TestFolder folder;
  folder.write("kernel.so", linked_kernel(kernel, target));
  const std::string build = "CLANG=" TW_CLANG " LLD=" TW_LLD " " TW_TEST_DIR
                            "/cross_cc.sh aarch64 " TW_TEST_DIR "/backends/estimate_runner.c " +
                            (folder / "runner");
  if (std::system(build.c_str()) != 0 ||
      std::system("qemu-aarch64 --version > /dev/null 2>&1") != 0) {
    MESSAGE("skipped: no libc or no qemu for aarch64");
    return std::nullopt;
  }
  const int64_t once = count_under_qemu(folder, kernel.name, 1);
  const int64_t thrice = count_under_qemu(folder, kernel.name, 3);
  REQUIRE(once > 0);
  REQUIRE(thrice > once);
  return static_cast<double>(thrice - once) / 2;
}

const char* const kTile = R"(kernel @tile(x: in f32[24, 20], w: const f32[2, 20, 8],
                                           y: out f32[24, 16]) {
    temp c: f32[4, 8] register
    for io in 6 { for jo in 2 {
      for i0 in 4 unroll { for l0 in 8 vector { c0: c[i0, l0] = 0.0 } }
      for k in 20 reduce { for i in 4 unroll { for l in 8 vector {
        c: c[i, l] += x[io * 4 + i, k] * w[jo, k, l]
      } } }
      for i2 in 4 unroll { for l2 in 8 vector {
        y: y[io * 4 + i2, jo * 8 + l2] = max(0.0, c[i2, l2])
      } }
    } }
  })";
// A guard that depends on two loops, a reduction that a condition cuts, and two nests
const char* const kGuarded = R"(kernel @guarded(x: in f32[7, 12], w: const f32[12, 9],
                                                y: out f32[7, 9]) {
    temp c: f32[7, 9]
    for i in 7 { for j in 9 { for k in 12 reduce {
      c: c[i, j] += x[i, k] * w[k, j] where k < 11 && i + k < 9 init 0.5
    } } }
    for i1 in 7 { for j1 in 9 { y: y[i1, j1] = max(0.0, c[i1, j1]) } }
  })";
// The last of the outer iterations is partial.
const char* const kTails = R"(kernel @tails(x: in f32[37], y: out f32[37]) {
    for o in 5 { for i in 8 { y: y[o * 8 + i] = exp(x[o * 8 + i]) where o * 8 + i < 37 } }
  })";

}  // namespace

TEST_CASE("blocks run as often as qemu counts") {
  for (const char* text : {kTile, kGuarded, kTails}) {
    const Kernel kernel = kernel_of(text);
    CAPTURE(kernel.name);
    const Target target = cortex("cortex-a72");
    const double estimated = estimate_of(target, kernel).instructions;
    const std::optional<double> counted = instructions_under_qemu(target, kernel);
    if (!counted) return;
    // The call itself takes a few dozen instructions.
    CHECK(std::abs(estimated - *counted) <= 40 + 0.02 * *counted);
    MESSAGE(kernel.name << ": " << estimated << " estimated, " << *counted << " counted");
  }
}

TEST_CASE("an estimate is the same each time, and not faster than the processor can be") {
  const Kernel kernel = kernel_of(kTile);
  for (const Target& target :
       {cortex("cortex-a53"), cortex("cortex-a72"), cortex("neoverse-n1"), riscv()}) {
    CAPTURE(target.cpu);
    const KernelEstimate first = estimate_of(target, kernel), again = estimate_of(target, kernel);
    CHECK(first.cycles == again.cycles);
    CHECK(first.instructions == again.instructions);
    // 24 x 16 x 20 multiply-adds, four lanes an instruction, at most two of them a cycle
    CHECK(first.cycles > 24 * 16 * 20 / 8);
    CHECK(first.cycles < 2 * 24 * 16 * 20);
  }
  // cortex-a53: one multiply-add a cycle, in order; neoverse-n1: three instructions, out of order
  CHECK(estimate_of(cortex("cortex-a53"), kernel).cycles >
        estimate_of(cortex("neoverse-n1"), kernel).cycles);
}

TEST_CASE("the hottest loop of a tile is its reduction: so many multiply-adds, and no spill") {
  Target target = cortex("cortex-a72");
  target.core.f32 = 4;
  const HotLoop hot = estimate_of(target, kernel_of(kTile)).hot;
  CHECK(hot.iterations == 6 * 2 * 20);
  CHECK(hot.multiply_adds == 4 * 8);
  CHECK(hot.spills == 0);
  const double percent = 100 * hot.multiply_adds / hot.once() / 4;
  CAPTURE(percent);
  CHECK(percent > 50);
  CHECK(percent <= 100);
}

TEST_CASE("a tile of more registers than there are spills in its hottest loop") {
  const Kernel kernel = kernel_of(R"(kernel @large(x: in f32[12, 20], w: const f32[20, 16],
                                                   y: out f32[12, 16]) {
    temp c: f32[12, 16] register
    for i0 in 12 unroll { for l0 in 16 vector { c0: c[i0, l0] = 0.0 } }
    for k in 20 reduce { for i in 12 unroll { for l in 16 vector {
      c: c[i, l] += x[i, k] * w[k, l]
    } } }
    for i2 in 12 unroll { for l2 in 16 vector { y: y[i2, l2] = c[i2, l2] } }
  })");
  const HotLoop hot = estimate_of(cortex("cortex-a72"), kernel).hot;
  CHECK(hot.multiply_adds == 12 * 16);
  // 48 vectors of sums, but 32 registers: the others are loaded and saved.
  CHECK(hot.spills >= 2 * 16);
}

TEST_CASE("a loop without multiply-adds has none, and code without a loop has no hottest one") {
  const Target target = cortex("cortex-a72");
  const HotLoop sums = estimate_of(target, kernel_of(R"(kernel @sums(x: in f32[64],
                                                                     y: out f32[64]) {
    for i in 64 { y: y[i] = x[i] + 1.0 }
  })"))
                           .hot;
  CHECK(sums.iterations == 64);
  CHECK(sums.multiply_adds == 0);
  CHECK(sums.once() > 0);
  const KernelEstimate straight = estimate_of(target, kernel_of(R"(kernel @four(x: in f32[4],
                                                                                y: out f32[4]) {
    for i in 4 vector { y: y[i] = x[i] * 2.0 }
  })"));
  CHECK(straight.cycles > 0);
  CHECK(straight.hot.iterations == 0);
}

TEST_CASE("an estimate says which processors it does not tell apart") {
  const auto alike = [](const Target& target) {
    auto backend = make_backend(target);
    REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
    return (*backend)->estimated_alike();
  };
  const std::vector<std::string> large = alike(cortex("cortex-a72"));
  CHECK(std::ranges::count(large, "cortex-a57") == 1);
  CHECK(std::ranges::count(large, "cortex-a53") == 0);
  CHECK(std::ranges::count(alike(cortex("cortex-a53")), "cortex-a53") == 1);
}

TEST_CASE("what cannot be estimated is refused") {
  const Kernel sized = kernel_of(R"(kernel @sized[n](x: in f32[n], y: out f32[n]) {
    for i in n { y: y[i] = x[i] + 1.0 }
  })");
  const std::string refusal = refusal_of(cortex("cortex-a72"), sized);
  CAPTURE(refusal);
  CHECK(refusal.find("has no known trip count") != std::string::npos);
  CHECK(refusal_of(baseline_target(Arch::aarch64), kernel_of(kTile))
            .find("'generic' is a set of instructions and no processor") != std::string::npos);
  Target arm = baseline_target(Arch::arm);
  arm.cpu = "cortex-a7";
  CHECK(refusal_of(arm, kernel_of(kTile)).find("LLVM has no model of the processor 'cortex-a7'") !=
        std::string::npos);
}
