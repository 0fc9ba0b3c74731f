// Conditions move out of the loops that do not change them, and nowhere else.
#include "ir/kernel/guards.h"

#include <doctest/doctest.h>

namespace {

std::string hoisted(const std::string& text) {
  llvm::Expected<tw::Kernel> kernel = tw::parse_kernel(text);
  REQUIRE_MESSAGE(bool(kernel), tw::error_text(kernel.takeError()));
  REQUIRE(tw::error_text(tw::verify(*kernel)) == "");
  kernel->body = tw::hoist_guards(kernel->body);
  CHECK(tw::error_text(tw::verify(*kernel)) == "");
  return tw::print(*kernel);
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("guards: a where that the inner loops do not change becomes an if around them") {
  const std::string text = hoisted(R"(kernel @k(x: in f32[8, 8], y: out f32[8]) {
  for i in 8 { y.init: y[i] = 0.0 for k in 3 reduce { for c in 8 reduce {
    y: y[i] += x[i + k - 1, c] where 0 <= i + k - 1 && i + k - 1 < 8 && c < i
  } } }
})");
  CHECK(has(text, R"(    for k in 3 reduce {
      if 0 <= i + k - 1 && i + k - 1 < 8 {
        for c in 8 reduce {
          y: y[i] += x[i + k - 1, c] where c < i
        }
      }
    })"));
}

TEST_CASE("guards: an init is not guarded, nor a neighbour that does not ask for it") {
  const std::string init = R"(kernel @k(x: in f32[8, 8], y: out f32[8]) {
  for i in 8 {
    for c in 8 reduce {
      y: y[i] += x[i, c] where i < 4 init 0.0
    }
  }
}
)";
  CHECK(hoisted(init) == init);
  const std::string text = hoisted(
      R"(kernel @k(x: in f32[8, 8], y: out f32[8, 8], z: out f32[8, 8]) {
  for i in 8 { for j in 8 { if i < 4 { y: y[i, j] = x[i, j] } for l in 2 { if i < 4 { z: z[i, l] = x[i, j] } } } }
})");
  CHECK(has(text, "  for i in 8 {\n    if i < 4 {\n      for j in 8 {\n"));
  const std::string apart = hoisted(
      R"(kernel @k(x: in f32[8, 8], y: out f32[8, 8], z: out f32[8, 8]) {
  for i in 8 { for j in 8 { y: y[i, j] = x[i, j] for l in 2 { if i < 4 { z: z[i, l] = x[i, j] } } } }
})");
  CHECK(has(apart, "      if i < 4 {\n        for l in 2 {\n"));
}

TEST_CASE("guards: what reads a buffer stays") {
  const std::string text = R"(kernel @k(x: in f32[8], m: in f32[8], y: out f32[8, 8]) {
  for i in 8 {
    for j in 8 {
      if m[i] < 1.0 {
        y: y[i, j] = x[i]
      }
    }
  }
}
)";
  CHECK(hoisted(text) == text);
}
