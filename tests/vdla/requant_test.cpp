// The reference is onnxruntime's float formula. Random data would never meet the ties, so the cases
// aim at every threshold.
#include "backends/vdla/requant.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

using namespace tw::vdla;

namespace {

int reference(int32_t sum, float scale, int zero_point) {
  float product = static_cast<float>(sum) * scale;
  product = std::clamp(product, -1024.0f, 1024.0f);
  return std::clamp(static_cast<int>(std::nearbyint(product)) + zero_point, -128, 127);
}

// Calls fn with accumulators around each threshold k + 0.5 of the scale, if they convert to float
// exactly or saturate.
template <class Fn>
void each_threshold(float scale, Fn fn) {
  for (int k = -300; k <= 300; ++k) {
    double at = (k + 0.5) / static_cast<double>(scale);
    if (std::abs(at) > 2.0e9) continue;
    int64_t near = std::llround(at);
    for (int64_t sum = near - 2; sum <= near + 2; ++sum)
      if (std::abs(sum) < 1 << 24 || std::abs(k) > 258) fn(static_cast<int32_t>(sum));
  }
}

// Rounds exactly, without the float window. The comparison shows that the cases meet differences.
int exact(int32_t sum, RequantParams p, int zero_point) {
  uint64_t a = static_cast<uint64_t>(std::abs(int64_t{sum})) * p.multiplier, whole = a >> p.shift,
           half = uint64_t{1} << (p.shift - 1);
  uint64_t fraction = a & (2 * half - 1);
  int64_t value = static_cast<int64_t>(
      std::min<uint64_t>(whole + (fraction == half ? whole & 1 : fraction > half), 511));
  return static_cast<int>(std::clamp<int64_t>(zero_point + (sum < 0 ? -value : value), -128, 127));
}

}  // namespace

TEST_CASE("every threshold of random scales, as onnxruntime rounds it") {
  std::mt19937 random(5);
  int64_t cases = 0, plain_wrong = 0;
  for (int n = 0; n < 1500; ++n) {
    float scale = std::exp2(std::uniform_real_distribution<float>(-16.0f, -1.0f)(random));
    auto params = requant_params(scale, 0);
    REQUIRE(params);
    REQUIRE(std::ldexp(static_cast<double>(params->multiplier), -params->shift) ==
            static_cast<double>(scale));
    int zero_point = std::array{-128, -1, 0, 3, 127}[n % 5];
    each_threshold(scale, [&](int32_t sum) {
      int want = reference(sum, scale, zero_point),
          got = requantize(sum, *params, static_cast<int8_t>(zero_point), -128, 127);
      if (want != got)
        FAIL_CHECK("sum " << sum << " scale " << scale << ": " << got << ", onnxruntime " << want);
      plain_wrong += exact(sum, *params, zero_point) != want;
      ++cases;
    });
  }
  CHECK(cases > 1000000);
  CHECK(plain_wrong > 100);  // the window matters in these cases
}

TEST_CASE("ties of power-of-two scales go to even") {
  for (int e = 1; e <= 15; ++e) {
    float scale = std::ldexp(1.0f, -e);
    auto params = requant_params(scale, 0);
    REQUIRE(params);
    for (int k = -200; k <= 200; ++k) {
      int32_t sum = (2 * k + 1) << (e - 1);
      CHECK(requantize(sum, *params, 0, -128, 127) == reference(sum, scale, 0));
    }
  }
}

TEST_CASE("scales that can and cannot be carried") {
  CHECK(!requant_params(0.0f, 0));
  CHECK(!requant_params(-1.0f, 0));
  CHECK(!requant_params(INFINITY, 0));
  CHECK(!requant_params(NAN, 0));
  CHECK(!requant_params(std::ldexp(1.0f, 23), 0));  // shift 0
  CHECK(requant_params(std::ldexp(1.0f, 22), 0)->shift == 1);
  CHECK(requant_params(std::ldexp(1.0f, -32), 0)->shift == 55);
  CHECK(!requant_params(std::ldexp(1.0f, -33), 0));
}

TEST_CASE("bias wraps, clamps hold, extremes are defined") {
  RequantParams one = *requant_params(1.0f, 10);
  CHECK(requantize(5, one, 0, -128, 127) == 15);
  CHECK(requantize(5, one, 3, 0, 16) == 16);
  CHECK(requantize(-50, one, 3, 0, 16) == 0);
  CHECK(requantize(INT32_MAX, one, 0, -128, 127) == -128);
  for (int32_t acc : {INT32_MIN, INT32_MAX, 0, -1})
    for (int shift = 0; shift < 256; ++shift)
      for (uint32_t multiplier : {0u, 1u, 0xffffffu}) {
        int8_t out = requantize(acc, {0, multiplier, static_cast<uint8_t>(shift)}, 0, -5, 5);
        REQUIRE((out >= -5 && out <= 5));
      }
  CHECK(saturate(INT32_MAX, 127, -128, 127) == 127);
  CHECK(saturate(INT32_MIN, -128, -128, 127) == -128);
  CHECK(saturate(100, 5, -128, 127) == 105);
}

TEST_CASE("parameters survive packing") {
  RequantParams params{-7, 0xabcdef, 55};
  CHECK(pack(params) == 0x37abcdeffffffff9);
  RequantParams back = unpack(pack(params));
  CHECK(back.bias == -7);
  CHECK(back.multiplier == 0xabcdef);
  CHECK(back.shift == 55);
}
