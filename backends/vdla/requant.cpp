#include "backends/vdla/requant.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tw::vdla {

std::optional<RequantParams> requant_params(float scale, int32_t bias) {
  if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  int exponent;
  float mantissa = std::frexp(scale, &exponent);  // in [0.5, 1)
  int shift = 24 - exponent;
  if (shift < 1 || shift > 55) return std::nullopt;
  return RequantParams{bias, static_cast<uint32_t>(std::ldexp(mantissa, 24)),
                       static_cast<uint8_t>(shift)};
}

int8_t requantize(int32_t acc, RequantParams params, int8_t zero_point, int8_t low, int8_t high) {
  int32_t sum = static_cast<int32_t>(static_cast<uint32_t>(acc) +
                                     static_cast<uint32_t>(params.bias));
  uint64_t product = static_cast<uint64_t>(std::abs(int64_t{sum})) * (params.multiplier & 0xffffff);
  int shift = params.shift & 63;
  uint64_t whole = product >> shift, fraction = product & ((uint64_t{1} << shift) - 1);
  uint64_t half = shift == 0 ? 0 : uint64_t{1} << (shift - 1);
  // A float product rounds to the tie exactly when the true product lies within half a unit of its
  // last place.
  int top = 63 - std::countl_zero(product | 1);
  uint64_t window = top >= 24 ? uint64_t{1} << (top - 24) : 0;
  uint64_t distance = fraction > half ? fraction - half : half - fraction;
  uint64_t rounded = whole + (distance <= window ? whole & 1 : fraction > half);
  int64_t value = static_cast<int64_t>(std::min<uint64_t>(rounded, 511));
  return static_cast<int8_t>(
      std::clamp<int64_t>(zero_point + (sum < 0 ? -value : value), low, high));
}

int8_t saturate(int32_t acc, int8_t zero_point, int8_t low, int8_t high) {
  return static_cast<int8_t>(std::clamp<int64_t>(int64_t{acc} + zero_point, low, high));
}

uint64_t pack(RequantParams params) {
  return static_cast<uint32_t>(params.bias) | uint64_t{params.multiplier & 0xffffff} << 32 |
         uint64_t{params.shift} << 56;
}

RequantParams unpack(uint64_t lane) {
  return {static_cast<int32_t>(static_cast<uint32_t>(lane)),
          static_cast<uint32_t>(lane >> 32 & 0xffffff), static_cast<uint8_t>(lane >> 56)};
}

}  // namespace tw::vdla
