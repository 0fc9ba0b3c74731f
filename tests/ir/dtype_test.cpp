// Floats of a byte and less: every code, and rounding of any number to the nearest one.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

constexpr DType kSmall[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                            DType::f4e2m1};

int codes(DType t) { return 1 << dtype_bits(t); }

}  // namespace

TEST_CASE("every code of a small float is a number that becomes the code again") {
  for (DType t : kSmall) {
    CAPTURE(dtype_name(t));
    int not_finite = 0;
    for (int code = 0; code < codes(t); ++code) {
      const float value = small_to_f32(t, static_cast<uint8_t>(code));
      not_finite += !std::isfinite(value);
      if (!std::isnan(value)) CHECK(f32_to_small(t, value, false) == code);
      else CHECK(std::isnan(small_to_f32(t, f32_to_small(t, value, true))));
    }
    CHECK(not_finite == (t == DType::f8e4m3fn ? 2
                         : t == DType::f8e5m2 ? 8
                         : t == DType::f4e2m1 ? 0
                                              : 1));
  }
  for (int code = 0; code < 255; ++code)
    CHECK(f32_to_small(DType::f8e8m0, small_to_f32(DType::f8e8m0, static_cast<uint8_t>(code)),
                       false) == code);
}

TEST_CASE("the largest numbers and what is beyond them") {
  const struct {
    DType t;
    float largest;
  } rows[] = {{DType::f8e4m3fn, 448},
              {DType::f8e4m3fnuz, 240},
              {DType::f8e5m2, 57344},
              {DType::f8e5m2fnuz, 57344},
              {DType::f4e2m1, 6}};
  for (const auto& row : rows) {
    CAPTURE(dtype_name(row.t));
    for (float beyond : {row.largest * 2, INFINITY, -INFINITY, -row.largest * 1.5F}) {
      CHECK(round_to(row.t, beyond, true) == std::copysign(row.largest, beyond));
      const double lost = round_to(row.t, beyond);
      CHECK((row.t == DType::f4e2m1   ? std::fabs(lost) == 6
             : row.t == DType::f8e5m2 ? std::isinf(lost)
                                      : std::isnan(lost)));
    }
    CHECK(round_to(row.t, row.largest) == row.largest);
  }
}

TEST_CASE("rounding of small floats is to the nearest, ties to even") {
  std::mt19937 random(3);
  for (DType t : kSmall) {
    CAPTURE(dtype_name(t));
    for (int round = 0; round < 2000; ++round) {
      const float x = std::ldexp(std::uniform_real_distribution<float>(-1, 1)(random),
                                 static_cast<int>(random() % 24) - 16);
      const float got = small_to_f32(t, f32_to_small(t, x, true));
      float best = INFINITY;
      for (int code = 0; code < codes(t); ++code) {
        const float value = small_to_f32(t, static_cast<uint8_t>(code));
        if (std::isfinite(value)) best = std::min(best, std::fabs(value - x));
      }
      CHECK(std::fabs(got - x) == best);
    }
  }
  CHECK(round_to(DType::f8e4m3fn, 1.0625) == 1);
  CHECK(round_to(DType::f8e4m3fn, 1.1875) == 1.25);
  CHECK(std::signbit(round_to(DType::f8e4m3fn, -1e-9)));
  CHECK_FALSE(std::signbit(round_to(DType::f8e4m3fnuz, -1e-9)));
}

TEST_CASE("integers narrower than a byte wrap and saturate") {
  CHECK(wrap_to(DType::i4, 9) == -7);
  CHECK(wrap_to(DType::u2, 7) == 3);
  CHECK(cast_int(DType::i4, DType::i32, 100, true) == 7);
  CHECK(cast_int(DType::i2, DType::i32, -100, true) == -2);
  CHECK(cast_int(DType::u4, DType::i8, -1, true) == 0);
  CHECK(lowest_of(DType::i64) == INT64_MIN);
  CHECK(highest_of(DType::u64) == -1);
}

}  // namespace tw
