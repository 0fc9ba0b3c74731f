#include "ir/kernel/loads.h"

#include <doctest/doctest.h>

#include "ir/text.h"

using namespace tw;

namespace {
std::string loaded(const std::string& text) {
  auto kernel = parse_kernel(text);
  return kernel ? to_string(loaded_bytes(*kernel)) : error_text(kernel.takeError());
}

// A row of a depthwise convolution with 3 taps. `tile` outputs of 4 lanes are in registers.
std::string depthwise(int64_t tile, int64_t stride) {
  const std::string t = std::to_string(tile), s = std::to_string(stride),
                    width = std::to_string((tile - 1) * stride + 3);
  return "kernel @d(x: in f32[10, " + width + ", 4], w: const f32[3, 4], y: out f32[10, " + t +
         ", 4]) {"
         "  temp c: f32[1, " +
         t +
         ", 4] register"
         "  for h in 10 {"
         "    for i in " +
         t +
         " unroll { for l in 4 vector { z: c[0, i, l] = 0.0 } }"
         "    for k in 3 unroll reduce { for i1 in " +
         t + " unroll { for l1 in 4 vector { c: c[0, i1, l1] += x[h, i1 * " + s +
         " + k, l1] * w[k, l1] } } }"
         "    for i2 in " +
         t +
         " unroll { for l2 in 4 vector { y: y[h, i2, l2] = c[0, i2, l2] } }"
         "  } }";
}
}  // namespace

TEST_CASE("taps share what they read; weights that no loop moves are loaded once") {
  CHECK(loaded(depthwise(7, 1)) == std::to_string(16 * (10 * 9 + 3)));
  CHECK(loaded(depthwise(7, 2)) == std::to_string(16 * (10 * 15 + 3)));
  CHECK(loaded(depthwise(1, 2)) == std::to_string(16 * (10 * 3 + 3)));
}

TEST_CASE("a broadcast is one element, a symbol stays, registers are nothing") {
  CHECK(
      loaded(
          "kernel @m[n](x: in f32[n], w: const f32[n, 8], y: out f32[8]) { temp c: f32[8] register"
          "  for j in 8 vector { z: c[j] = 0.0 }"
          "  for k in n reduce { for j1 in 8 vector { c: c[j1] += x[k] * w[k, j1] } }"
          "  for j2 in 8 vector { y: y[j2] = c[j2] } }") == "n * 36");
}

TEST_CASE("conditions of the straight piece are decided, a gather loads at every point") {
  CHECK(loaded("kernel @c(x: in f32[8], y: out f32[8]) { for i in 8 unroll { if i < 5 { y: y[i] = "
               "x[i] } } }") == "20");
  CHECK(loaded("kernel @g(w: const f32[100], i: in i64[4], y: out f32[4]) { for a in 4 unroll { y: "
               "y[a] = w[i[a]] } }") == "48");
}

TEST_CASE("indices may divide by a symbol, whatever it stands for") {
  CHECK(loaded("kernel @s[n](x: in f32[n], y: out f32[8]) { for i in 8 unroll { y: y[i] = x[i % (n "
               "// 4)] } }") == "32");
  CHECK(loaded("kernel @s[n](x: in f32[n], y: out f32[8]) { for i in 8 unroll { y: y[i] = x[i % (n "
               "- 65521)] } }") == "32");
  CHECK(loaded("kernel @s[n](x: in f32[n], y: out f32[8]) { for i in 8 unroll { if i % (n // "
               "70000) < 1 { y: y[i] = x[i] } } }") == "32");
}

TEST_CASE(
    "an index that is computed in floats, as a resize of free sizes does, loads at every point") {
  CHECK(loaded("kernel @r[n](x: in f32[n], y: out f32[8]) { for i in 8 unroll { y: y[i] = "
               "x[min(i64(f64(i) * 0.5:f64), n - 1)] } }") == "32");
}
