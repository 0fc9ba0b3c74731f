// Products of integers in the forms that instructions want, with any zero points and extents: each
// step keeps the results, to the bit.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "tests/ir/schedule/stepwise.h"

using namespace tw;
using test::stepwise, test::text;

namespace {

Kernel product(const char* left, int64_t zero, int64_t rows, int64_t depth, int64_t columns) {
  const std::string less = zero == 0 ? "" : text(" - {0}:i32", zero);
  Expected<Kernel> kernel = parse_kernel(
      text("kernel @product(x: in {0}[{1}, {2}], w: const i8[{2}, {3}], y: out i32[{1}, {3}]) {{ "
           "temp c: i32[{1}, {3}] "
           "for i in {1} {{ for j in {3} {{ for k in {2} reduce {{ "
           "c: c[i, j] += (i32(x[i, k]){4}) * i32(w[k, j]) init 0:i32 } } } "
           "for a in {1} {{ for b in {3} {{ y: y[a, b] = c[a, b] * 3:i32 } } }",
           left, rows, depth, columns, less));
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  return *kernel;
}

}  // namespace

TEST_CASE("sums of integers keep their results in the forms that instructions want") {
  std::mt19937 random(7);
  for (const auto& [left, zero, counted, type] :
       {std::tuple("i8", -128, -128, "u8"), std::tuple("i8", 7, -128, "u8"),
        std::tuple("u8", 200, 0, "u8"), std::tuple("u8", 0, 128, "i8"),
        std::tuple("u8", 128, 128, "i8"), std::tuple("i8", 5, 5, "i16")})
    for (const auto& [rows, depth, columns] :
         {std::tuple(3, 6, 10), std::tuple(1, 1, 1), std::tuple(5, 8, 4), std::tuple(2, 13, 7)}) {
      CAPTURE(left);
      CAPTURE(zero);
      CAPTURE(depth);
      const Kernel defined = product(left, zero, rows, depth, columns);
      std::vector<KernelArgument> inputs(3);
      inputs[0].bytes.resize(static_cast<size_t>(rows * depth));
      inputs[1].bytes.resize(static_cast<size_t>(depth * columns));
      inputs[2].bytes.resize(static_cast<size_t>(rows * columns * 4));
      for (int i : {0, 1})
        for (std::byte& b : inputs[static_cast<size_t>(i)].bytes)
          b = static_cast<std::byte>(random());
      std::string steps;
      if (zero != counted) steps += text("recount c left {0} -> e constant\n", counted);
      if (std::strcmp(left, type) != 0 || counted != 0) steps += text("narrow c left {0}\n", type);
      steps +=
          "pack c right -> wp constant [j // 4, k // 4, j % 4, k % 4] wj wk wl ws\n"
          "pad j 4 repeat\npad i 2 repeat\n"
          "pack c left -> xp global [i // 2, k // 4, i % 2, k % 4] xt xs xi xk\n"
          "pad k 4\nsplit k 4 -> k kp\n";
      const Kernel kernel = stepwise(defined, steps, inputs);
      CHECK(print(kernel).find("where") == std::string::npos);  // zeros need no condition
    }
}

TEST_CASE("a constant factor is packed without regard to a condition on a symbol") {
  Expected<Kernel> kernel = parse_kernel(
      "kernel @window[n](x: in f32[n], w: const f32[3, 4], y: out f32[4]) { "
      "temp c: f32[4] "
      "for j in 4 { for k in 3 reduce { c: c[j] += x[k * 2] * w[k, j] where k * 2 < n init 0.0 } } "
      "for b in 4 { y: y[b] = c[b] } }");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  Expected<Schedule> schedule = parse_schedule(
      "schedule {\npack c right -> wp constant [k, j] wk wj\n}\n");
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Expected<Kernel> packed = tw::apply(*kernel, *schedule);  // looks at the scopes, too
  REQUIRE_MESSAGE(bool(packed), error_text(packed.takeError()));
  CHECK(print(*packed).find("wp[wk, wj] = w[wk, wj]\n") != std::string::npos);
}

namespace {

// Products with numbers of `bits` bits, whose rows are rounded to bytes
Kernel product_of_bits(int bits, int64_t rows, int64_t bytes, int64_t columns) {
  const int64_t places = 8 / bits;
  Expected<Kernel> kernel = parse_kernel(
      text("kernel @product(x: in f32[{1}, {4}], w: const u8[{2}, {3}], y: out f32[{1}, {2}]) {{ "
           "temp r: i8[{1}, {4}] temp c: i32[{1}, {2}] "
           "for a in {1} {{ for b in {4} {{ r: r[a, b] = i8(round(x[a, b])) } } "
           "for i in {1} {{ for j in {2} {{ for k in {3} reduce {{ for p in {5} reduce {{ "
           "c: c[i, j] += i32(r[i, k * {5} + p]) "
           "* (i32(w[j, k]) >> i32(p * {0}) & {6}:i32) init 0:i32 } } } } "
           "for m in {1} {{ for n in {2} {{ y: y[m, n] = f32(c[m, n]) * 0.5 } } }",
           bits, rows, columns, bytes, bytes * places, places, (1 << bits) - 1));
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  return *kernel;
}

std::vector<KernelArgument> rows_and_bytes(std::mt19937& random, const Kernel& kernel) {
  std::vector<KernelArgument> inputs(3);
  const auto count = [&](size_t i) {
    size_t all = 1;
    for (const Expr& extent : kernel.buffers[i].shape)
      all *= static_cast<size_t>(*as_const(extent));
    return all;
  };
  std::vector<float> x(count(0));
  for (float& number : x) number = static_cast<float>(random() % 256) - 128;
  inputs[0].bytes.resize(4 * x.size());
  std::memcpy(inputs[0].bytes.data(), x.data(), 4 * x.size());
  inputs[1].bytes.resize(count(1));
  for (std::byte& b : inputs[1].bytes) b = static_cast<std::byte>(random());
  inputs[2].bytes.resize(4 * count(2));
  return inputs;
}

}  // namespace

TEST_CASE("numbers of few bits keep their sums in the forms that instructions want") {
  std::mt19937 random(7);
  for (const int bits : {2, 4, 8})
    for (const auto& [rows, bytes, columns] :
         {std::tuple(3, 8, 10), std::tuple(1, 4, 1), std::tuple(2, 16, 7)})
      for (const char* type : {"u8", "i8", "u16"}) {
        if (bits == 8 && std::strcmp(type, "i8") == 0) continue;  // lacks their numbers
        CAPTURE(bits);
        CAPTURE(type);
        const Kernel defined = product_of_bits(bits, rows, bytes, columns);
        const std::string steps = text(
            "cache_read w c -> wp constant\npad wp_0 4 repeat\n"
            "layout wp n k -> [n // 4, k // 2, n % 4, k % 2]\npad j 4 repeat\n"
            "layout r i k -> [i, k % {0}, k // {0}]\nretype r i16\nnarrow c right {1}\n"
            "split k 2 -> k kp\nreorder k p kp\n"
            "pack c right -> codes global [j // 4, k, p, j % 4, kp] nj nk np nl nb\n",
            8 / bits, type);
        const Kernel kernel = stepwise(defined, steps, rows_and_bytes(random, defined));
        CHECK(print(kernel).find("where") == std::string::npos);
      }
}

TEST_CASE("floats hold sums of integers that are small enough") {
  std::mt19937 random(7);
  for (const int bits : {2, 4, 8}) {
    const Kernel defined = product_of_bits(bits, 3, 64, 5);
    for (const char* type : {"f32", "f64", "i64"}) {
      CAPTURE(type);
      const std::string steps = text("retype c {0}\nretype r {0}\n", type);
      const Kernel kernel = stepwise(defined, steps, rows_and_bytes(random, defined));
      CHECK(print(kernel).find("i32(r[") == std::string::npos);
    }
  }
  // 127 * 255 * 1024 is more than 2^24.
  Expected<Schedule> schedule = parse_schedule("schedule {\n  retype c f32\n}\n");
  REQUIRE(bool(schedule));
  Expected<Kernel> refused = tw::apply(product_of_bits(8, 1, 1024, 2), *schedule);
  REQUIRE_FALSE(refused);
  CHECK(error_text(refused.takeError()).find("fit f32") != std::string::npos);
}
