// The nest of a single stage: the loops that are fused for the threads.
#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "ir/text.h"
#include "kernels/schedule/builder.h"

using namespace tw;

namespace {

// Returns the kernel after map_nest of its only stage, for a chip with lanes of 16 floats.
std::string mapped(const std::string& text) {
  Expected<Target> target = load_target("x86-64-v4", {std::string(TW_SOURCE_DIR) + "/configs"});
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  target->cores = 4;
  Expected<Kernel> kernel = parse_kernel(text);
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  ScheduleBuilder s(*kernel, *target);
  s.map_nest(s.stages().front());
  const std::string result = print(s.kernel());
  Expected<Schedule> schedule = s.finish();
  CHECK_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  return result;
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

}  // namespace

TEST_CASE("loops that no element's place divides are one") {
  const std::string copy = mapped(R"(kernel @copy(x: in f32[8, 30, 16], y: out f32[8, 30, 16]) {
    for a in 8 { for b in 30 { for c in 16 { s: y[a, b, c] = x[a, b, c] } } }
  })");
  CHECK(has(copy, "for s_p in 240 parallel"));
  const std::string scaled = mapped(R"(kernel @row(x: in f32[8, 30, 16], y: out f32[240, 32]) {
    for a in 8 { for b in 30 { for c in 16 { s: y[a * 30 + b, c * 2] = x[a, b, c] + x[0, 0, c] } } }
  })");
  CHECK(has(scaled, "for s_p in 240 parallel"));
}

TEST_CASE("a loop stays apart where one number for all would be divided") {
  const std::string turned = mapped(R"(kernel @turn(x: in f32[30, 8, 16], y: out f32[8, 30, 16]) {
    for a in 8 { for b in 30 { for c in 16 { s: y[a, b, c] = x[b, a, c] } } }
  })");
  CHECK(has(turned, "for a in 8 parallel"));
  CHECK(has(turned, "s: y[a, b, c] = x[b, a, c]"));
  const std::string bias = mapped(
      R"(kernel @bias(x: in f32[8, 30, 16], b: in f32[8], y: out f32[8, 30, 16]) {
    for a in 8 { for b in 30 { for c in 16 { s: y[a, b, c] = x[a, b, c] + b[a] } } }
  })");
  CHECK(has(bias, "s: y[a, b, c] = x[a, b, c] + b[a]"));
}

TEST_CASE("only whole lines of a padded copy ask whether they are padding") {
  const std::string padded = mapped(
      R"(kernel @pad(x: in f32[8, 28, 28, 16], y: out f32[8, 30, 30, 16]) {
    for a in 8 { for b in 30 { for c in 30 { for d in 16 {
      s: y[a, b, c, d] = select(0 < b && b < 29 && 0 < c && c < 29, x[a, b - 1, c - 1, d], 0.0:f32)
    } } } }
  })");
  CHECK(has(padded, "for c in 28 {"));
  CHECK(
      has(padded, "select(0 < s_p % 30 && s_p % 30 < 29, x[s_p // 30, s_p % 30 - 1, c, d], 0.0)"));
}

TEST_CASE("few lines are shared out vector by vector") {
  const std::string two = mapped(R"(kernel @two(x: in f32[30, 2, 16], y: out f32[2, 30, 16]) {
    for a in 2 { for b in 30 { for c in 16 { s: y[a, b, c] = x[b, a, c] } } }
  })");
  CHECK(has(two, "for s_p in 60 parallel"));
}
