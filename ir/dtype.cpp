#include "ir/storage_types.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace tw {
namespace {
constexpr std::array<DTypeInfo, kDTypeCount + 1> kTable = {{
    {DType::f32, "f32", 4, 1},
    {DType::f64, "f64", 8, 11},
    {DType::f16, "f16", 2, 10},
    {DType::bf16, "bf16", 2, 16},
    {DType::i8, "i8", 1, 3},
    {DType::i16, "i16", 2, 5},
    {DType::i32, "i32", 4, 6},
    {DType::i64, "i64", 8, 7},
    {DType::u8, "u8", 1, 2},
    {DType::u16, "u16", 2, 4},
    {DType::u32, "u32", 4, 12},
    {DType::u64, "u64", 8, 13},
    {DType::boolean, "bool", 1, 9},
    {DType::f8e4m3fn, "f8e4m3fn", 1, 17},
    {DType::f8e4m3fnuz, "f8e4m3fnuz", 1, 18},
    {DType::f8e5m2, "f8e5m2", 1, 19},
    {DType::f8e5m2fnuz, "f8e5m2fnuz", 1, 20},
    {DType::f8e8m0, "f8e8m0", 1, 24},
    {DType::f4e2m1, "f4e2m1", 1, 23},
    {DType::i4, "i4", 1, 22},
    {DType::i2, "i2", 1, 26},
    {DType::u4, "u4", 1, 21},
    {DType::u2, "u2", 1, 25},
    {DType::string, "string", 8, 8},
}};
consteval bool in_order() {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<size_t>(kTable[i].dtype) != i) return false;
  return true;
}
static_assert(in_order(), "rows are in the order of DType");

// Indexed by DType from f8e4m3fn on. The row of f8e8m0 only keeps the order.
constexpr std::array<SmallFloat, 6> kSmallFloats = {{
    {3, 7, 0x7e, 0x7f, 0x7f, false},
    {3, 8, 0x7f, 0x80, 0x80, true},
    {2, 15, 0x7b, 0x7c, 0x7e, false},
    {2, 16, 0x7f, 0x80, 0x80, true},
    {0, 127, 0xfe, 0xff, 0xff, true},
    {1, 1, 0x07, 0x07, 0x80, false},
}};
}  // namespace

const DTypeInfo& dtype_info(DType t) { return kTable[static_cast<size_t>(t)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& info : kTable)
    if (name == info.name) return info.dtype;
  return std::nullopt;
}
std::optional<DType> dtype_from_onnx(int data_type) {
  for (const DTypeInfo& info : kTable)
    if (data_type == info.onnx) return info.dtype;
  return std::nullopt;
}
bool is_float(DType t) { return t <= DType::bf16 || is_small_float(t); }
bool is_signed_int(DType t) {
  return (t >= DType::i8 && t <= DType::i64) || t == DType::i4 || t == DType::i2;
}
bool is_unsigned_int(DType t) {
  return (t >= DType::u8 && t <= DType::u64) || t == DType::u4 || t == DType::u2;
}

int dtype_bits(DType t) {
  if (t == DType::i2 || t == DType::u2) return 2;
  return t >= DType::f4e2m1 && t < DType::string ? 4 : 8 * dtype_bytes(t);
}
int64_t lowest_of(DType t) { return is_signed_int(t) ? -highest_of(t) - 1 : 0; }
int64_t highest_of(DType t) {
  return static_cast<int64_t>(~uint64_t{0} >> (64 - dtype_bits(t) + (is_signed_int(t) ? 1 : 0)));
}

float f16_to_f32(uint16_t h) {
  uint32_t sign = uint32_t(h >> 15) << 31, exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) {
    float magnitude = std::ldexp(float(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f32_to_f16(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f), sign = bits >> 16 & 0x8000,
           magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds to infinity
  // A subnormal half: the scale lets nearbyint round the last bit.
  if (magnitude < 0x38800000)
    return uint16_t(sign |
                    uint32_t(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24))));
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return uint16_t(sign | ((rounded - 0x38000000) >> 13));
}

float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

uint16_t f32_to_bf16(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 64);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

const SmallFloat& small_float(DType t) {
  return kSmallFloats[static_cast<size_t>(t) - static_cast<size_t>(DType::f8e4m3fn)];
}

float small_to_f32(DType t, uint8_t bits) {
  const SmallFloat& f = small_float(t);
  if (t == DType::f8e8m0)
    return bits == f.nan ? std::numeric_limits<float>::quiet_NaN()
                         : std::ldexp(1.0F, bits - f.bias);
  const int sign_bit = dtype_bits(t) - 1, magnitude = bits & ((1 << sign_bit) - 1),
            exponent = magnitude >> f.mantissa_bits;
  const bool negative = bits >> sign_bit & 1;
  if (f.one_zero ? bits == f.nan : magnitude > f.largest) {
    const bool infinite = t == DType::f8e5m2 && magnitude == f.overflow;
    const float special = infinite ? std::numeric_limits<float>::infinity()
                                   : std::numeric_limits<float>::quiet_NaN();
    return negative && !f.one_zero ? -special : special;
  }
  const int mantissa = magnitude & ((1 << f.mantissa_bits) - 1),
            significant = exponent ? mantissa | 1 << f.mantissa_bits : mantissa;
  const float value = std::ldexp(static_cast<float>(significant),
                                 (exponent ? exponent : 1) - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

uint8_t f32_to_small(DType t, float value, bool saturate) {
  if (t == DType::f8e8m0) return static_cast<uint8_t>(std::bit_cast<uint32_t>(value) >> 23 & 255);
  const SmallFloat& f = small_float(t);
  const int sign_bit = dtype_bits(t) - 1;
  const bool negative = std::signbit(value);
  const auto sign = static_cast<uint8_t>(negative ? 1 << sign_bit : 0);
  if (std::isnan(value))
    return t == DType::f4e2m1 ? uint8_t{8}
           : f.one_zero       ? f.nan
                              : static_cast<uint8_t>(f.nan | sign);
  const float magnitude = std::fabs(value);
  uint8_t bits = magnitude == 0 ? uint8_t{0} : f.overflow;
  if (magnitude != 0 && !std::isinf(magnitude)) {
    int exponent = 0;
    // The magnitude lies in [2^(exponent-1), 2^exponent).
    std::frexp(magnitude, &exponent);
    const int unit = std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits;
    // The mantissa with its leading one, in units of 2^unit
    const float count = std::nearbyint(std::ldexp(magnitude, -unit));
    const float coded = count + static_cast<float>((unit + f.mantissa_bits + f.bias - 1)
                                                   << f.mantissa_bits);
    bits = coded > static_cast<float>(f.largest) ? f.overflow : static_cast<uint8_t>(coded);
  }
  if (saturate && bits == f.overflow) bits = f.largest;
  if (f.one_zero) return bits == 0 || bits == f.nan ? bits : static_cast<uint8_t>(bits | sign);
  return static_cast<uint8_t>(bits | sign);
}
}  // namespace tw
