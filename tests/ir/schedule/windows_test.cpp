// Windows of integers in the forms that instructions want: sums without conditions, copies that hold
// the padding, zeros counted from elsewhere. Each step keeps the results, to the bit.
#include <doctest/doctest.h>

#include <random>

#include "tests/ir/schedule/stepwise.h"

using namespace tw;
using test::stepwise, test::text;

namespace {

// A convolution of one row: padded, with a stride and a dilation
struct Row {
  int64_t pixels, channels, taps, outputs, stride, dilation, before, zero;
  int64_t points() const { return (pixels + 2 * before - (taps - 1) * dilation - 1) / stride + 1; }
};

Kernel convolution(const Row& r) {
  const std::string at = r.taps == 1
                             ? text("i * {0}", r.stride)
                             : text("i * {0} + k * {1} - {2}", r.stride, r.dilation, r.before);
  Expected<Kernel> kernel = parse_kernel(
      text("kernel @row(x: in u8[{0}, {1}], w: const i8[{2}, {0}, {3}], y: out i32[{2}, {4}]) {{ "
           "temp c: i32[{2}, {4}] "
           "for m in {2} {{ for i in {4} {{ for r in {0} reduce {{ for k in {3} reduce {{ "
           "c: c[m, i] += (i32(x[r, {5}]) - {6}:i32) * i32(w[m, r, k]) "
           "where 0 <= {5} && {5} < {1} init 0:i32 } } } } "
           "for a in {2} {{ for b in {4} {{ y: y[a, b] = c[a, b] * 3:i32 } } }",
           r.channels, r.pixels, r.outputs, r.taps, r.points(), at, r.zero));
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  return *kernel;
}

std::vector<KernelArgument> random_inputs(const Row& r) {
  static std::mt19937 random(7);
  std::vector<KernelArgument> inputs(3);
  inputs[0].bytes.resize(static_cast<size_t>(r.channels * r.pixels));
  inputs[1].bytes.resize(static_cast<size_t>(r.outputs * r.channels * r.taps));
  inputs[2].bytes.resize(static_cast<size_t>(r.outputs * r.points() * 4));
  for (int i : {0, 1})
    for (std::byte& b : inputs[static_cast<size_t>(i)].bytes) b = static_cast<std::byte>(random());
  return inputs;
}

constexpr Row kRows[] = {{8, 3, 3, 5, 1, 1, 1, 7},    {9, 6, 3, 4, 2, 1, 1, 128},
                         {12, 2, 5, 3, 1, 2, 4, 255}, {7, 4, 1, 2, 3, 1, 0, 0},
                         {4, 1, 7, 1, 1, 1, 3, 200},  {11, 5, 2, 6, 2, 1, 1, 3},
                         {20, 3, 4, 2, 3, 2, 3, 11},  {23, 2, 3, 2, 2, 5, 4, 3}};

}  // namespace

TEST_CASE("a recounted sum has an excess for each point that misses other taps") {
  for (const Row& r : kRows) {
    CAPTURE(print(convolution(r)));
    for (const int64_t zero : {0, 128})
      if (zero != r.zero)
        stepwise(convolution(r), text("recount c left {0} -> e constant\n", zero),
                 random_inputs(r));
  }
}

TEST_CASE("points at which the condition always holds share one excess") {
  const Row wide{64, 2, 3, 2, 1, 1, 1, 9};
  const Kernel kernel = stepwise(convolution(wide), "recount c left 0 -> e constant\n",
                                 random_inputs(wide));
  CHECK(print(kernel).find("temp e: i32[2, 3] constant") != std::string::npos);
}

TEST_CASE("a copy of sliding windows holds the padding, for any zero") {
  for (const Row& r : kRows) {
    CAPTURE(print(convolution(r)));
    const std::string at = r.taps == 1 ? "i" : text("i * {0} + k * {1}", r.stride, r.dilation),
                      guard = "unguard c left\n";
    for (const char* counted : {"", "recount c left 0 -> e constant\nnarrow c left u8\n",
                                "recount c left 128 -> e constant\nnarrow c left i8\n"}) {
      if ((r.zero == 0 && counted[0] && counted[15] == '0') ||
          (r.zero == 128 && counted[0] && counted[15] == '1'))
        continue;
      const std::vector<KernelArgument> inputs = random_inputs(r);
      stepwise(convolution(r),
               guard + counted + text("pack c left -> xp global [r, {0}] xr xi\n", at), inputs);
      const Kernel kernel = stepwise(
          convolution(r),
          guard + counted +
              text("pack c right -> wp constant [m, k, r // 4, r % 4] wm wk wr wl\n"
                   "pad i 4 repeat\n"
                   "pack c left -> xp global [r // 4, ({0}) % 2, ({0}) // 2, r % 4] xr xh xi xl\n"
                   "pad r 4\nsplit r 4 -> r rl\n",
                   at),
          inputs);
      CHECK(print(kernel).find("where") == std::string::npos);
    }
  }
}

TEST_CASE("a window's copy needs a factor that depends on the window alone") {
  const auto refused = [](const char* value, const char* map) {
    Expected<Kernel> kernel = parse_kernel(
        text("kernel @k(x: in f32[40, 40], w: const f32[3], y: out f32[8]) {{ "
             "for i in 8 {{ for k in 3 reduce {{ y: y[i] += {0} * w[k] init 0.0 } } }",
             value));
    REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
    Expected<Schedule> schedule = parse_schedule(text("schedule {{\n{0}\n}\n", map));
    REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
    return error_text(tw::apply(*kernel, *schedule).takeError());
  };
  const auto tells = [&](const char* value, const char* map, const char* why) {
    const std::string said = refused(value, map);
    CHECK_MESSAGE(said.find(why) != std::string::npos, said);
  };
  CHECK(refused("x[i * 2 + k, 0]", "pack y left -> xp global [i * 2 + k] a") == "");
  tells("x[i * 2 + k, k]", "pack y left -> xp global [i * 2 + k] a", "depends on more of");
  tells("x[i, k]", "pack y left -> xp global [i + k] a", "depends on more of");
  CHECK(refused("x[i * 2 + k * 3, 0]", "pack y left -> xp global [i * 2 + k * 3] a") == "");
  tells("x[i * 2 + k * 3, k]", "pack y left -> xp global [i * 2 + k * 3] a", "depends on more of");
  tells("x[i * 2 + k * 2, 0]", "pack y left -> xp global [i * 2 + k * 2] a", "common divisor");
  tells("x[i + k, i]", "pack y left -> xp global [i + k, i] a b", "overlaps");
  CHECK(refused("x[i // 4, 0]", "pack y left -> xp global [i // 4] a") == "");
  tells("x[i, 0]", "pack y left -> xp global [i // 4] a", "depends on more of");
}

TEST_CASE("sums run over all points only where the other factor exists") {
  Expected<Kernel> kernel = parse_kernel(
      "kernel @k(x: in f32[12], w: const f32[3], y: out f32[8]) { "
      "for i in 8 { for k in 5 reduce { y: y[i] += x[i + k] * w[k] where k < 3 init 0.0 } } }");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  const auto said = [&](Factor side) {
    return error_text(tw::apply(*kernel, step::Unguard{"y", side}).takeError());
  };
  CHECK(said(Factor::left).find("the other factor does not exist") != std::string::npos);
  CHECK(said(Factor::right) == "");
}
