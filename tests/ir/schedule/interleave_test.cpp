// Virtual threads, written out for a machine without them.
#include "ir/schedule/interleave.h"

#include <doctest/doctest.h>

#include <cstring>

#include "ir/kernel/interpreter.h"

using namespace tw;

namespace {

std::vector<float> run(const Kernel& kernel) {
  std::vector<KernelArgument> arguments(2);
  std::vector<float> x(32), y(8);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 17);
  arguments[0].bytes.resize(32 * 4);
  arguments[1].bytes.resize(8 * 4);
  std::memcpy(arguments[0].bytes.data(), x.data(), 32 * 4);
  CHECK(error_text(interpret(kernel, arguments)) == "");
  std::memcpy(y.data(), arguments[1].bytes.data(), 8 * 4);
  return y;
}

}  // namespace

TEST_CASE("virtual threads stand next to each other, in the innermost loops") {
  Expected<Kernel> kernel = parse_kernel(R"(kernel @rows(x: in f32[8, 4], y: out f32[8]) {
    temp t: f32[4] stack per v
    temp s: f32[1] stack per v
    for v in 2 vthread { for a in 4 {
      for j in 4 { t: t[j] = x[v * 4 + a, j] * 2 }
      for k in 4 reduce { s: s[0] += t[k] init 0 }
      if a < 3 { y: y[v * 4 + a] = s[0] }
      if v * 4 + a == 3 || a + v == 4 { z: y[v * 4 + a] = 0 - s[0] }
    } }
  })");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  const Kernel made = interleave_virtual_threads(*kernel);
  CHECK(error_text(verify(made)) == "");
  CHECK(print(made) == R"(kernel @rows(x: in f32[8, 4], y: out f32[8]) {
  temp t: f32[2, 4] stack
  temp s: f32[2, 1] stack
  for a in 4 {
    for j in 4 {
      for v in 2 unroll {
        t: t[v, j] = x[v * 4 + a, j] * 2.0
      }
    }
    for k in 4 reduce {
      for v.1 in 2 unroll {
        s: s[v.1, 0] += t[v.1, k] init 0.0
      }
    }
    if a < 3 {
      for v.2 in 2 unroll {
        y: y[v.2 * 4 + a] = s[v.2, 0]
      }
    }
    for v.3 in 2 unroll {
      if v.3 * 4 + a == 3 || a + v.3 == 4 {
        z: y[v.3 * 4 + a] = 0.0 - s[v.3, 0]
      }
    }
  }
}
)");
  CHECK(run(made) == run(*kernel));
}
