// CPU code for statements that devices have too.
#include "backends/device/launch.h"
#include "tests/backends/oracle.h"
#include "tests/ir/parsed.h"

using namespace tw;

namespace {

std::string refused(const char* text) {
  auto backend = make_backend(host_target());
  REQUIRE(bool(backend));
  return error_text((*backend)->supports(test::parsed_kernel(text)));
}

}  // namespace

TEST_CASE(
    "prefetches become the instruction, in unrolled loops too, and need not lie inside the "
    "buffer") {
  const char* text = R"(kernel @sums(x: in f32[9, 48], y: out f32[48]) {
    for k in 9 reduce {
      for l in 3 unroll { prefetch x[k + 4, l * 16] }
      prefetch x[k * 100, 0] 0
      for j in 48 vector { y: y[j] += x[k, j] init 0.0 }
    }
  })";
  check_text(text);
  auto backend = make_backend(host_target());
  REQUIRE(bool(backend));
  auto code = (*backend)->disassemble(test::parsed_kernel(text), "asm");
  REQUIRE_MESSAGE(bool(code), error_text(code.takeError()));
  size_t kept = 0, once = 0;
  for (size_t at = 0; (at = code->find("prefetcht0", at)) != std::string::npos; ++at) ++kept;
  for (size_t at = 0; (at = code->find("prefetchnta", at)) != std::string::npos; ++at) ++once;
  CHECK(kept == 3);
  CHECK(once == 1);
}

TEST_CASE("virtual threads, blocks and annotations") {
  check_text(R"(kernel @rows(x: in f32[16, 12], y: out f32[16, 8]) {
    temp t: f32[8] stack per v
    for p in 2 parallel @grain=1 { for v in 2 vthread { for a in 4 {
      block sums {
        for j in 8 vector { t: t[j] = x[p * 8 + v * 4 + a, j] * 2.0 }
        for k in 4 reduce { for l in 8 vector { s: t[l] += x[p * 8 + v * 4 + a, l + k] } }
      }
      if a + v < 4 { for m in 8 vector { y: y[p * 8 + v * 4 + a, m] = t[m] } }
      if 4 <= a + v { for n in 8 vector { z: y[p * 8 + v * 4 + a, n] = 0.0 - t[n] } }
    } } }
  })");
}

TEST_CASE("a nest of many points that no threads share is noticed") {
  Target target;
  target.axes = {{"block.x", "block", 0}, {"thread.x", "thread", 256}};
  const auto alone = [&](const char* text) {
    Expected<bool> found = device::runs_in_one_thread(test::parsed_kernel(text), target);
    REQUIRE_MESSAGE(bool(found), error_text(found.takeError()));
    return *found;
  };
  CHECK(alone("kernel @k(y: out f32[512]) { for i in 512 { y: y[i] = 1.0 } }"));
  CHECK(
      alone("kernel @k[n](y: out f32[n, 64]) { for i in n { for j in 64 { y: y[i, j] = 1.0 } } }"));
  CHECK_FALSE(alone("kernel @k(y: out f32[16]) { for i in 16 { y: y[i] = 1.0 } }"));
  CHECK_FALSE(
      alone("kernel @k(y: out f32[512]) { for b in 4 bind block.x { for i in 128 {"
            " y: y[b * 128 + i] = 1.0 } } }"));
}

TEST_CASE("what only devices have is refused by name") {
  CHECK(refused("kernel @k(y: out f32[4]) { for i in 4 bind block.x { y: y[i] = 1 } }")
            .find("loop 'i' is bound to block.x, which a CPU does not have") != std::string::npos);
  CHECK(refused("kernel @k(y: out f32[4]) { tokens q for i in 4 { signal q wait q y: y[i] = 1 } }")
            .find("a CPU has none") != std::string::npos);
}
