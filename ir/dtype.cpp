#include "ir/dtype.h"

#include <array>
#include <bit>
#include <cmath>

namespace tw {
namespace {
constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    {DType::f32, "f32", 4, 1},   {DType::f64, "f64", 8, 11},  {DType::f16, "f16", 2, 10}, {DType::bf16, "bf16", 2, 16},
    {DType::i8, "i8", 1, 3},     {DType::i16, "i16", 2, 5},   {DType::i32, "i32", 4, 6},  {DType::i64, "i64", 8, 7},
    {DType::u8, "u8", 1, 2},     {DType::u16, "u16", 2, 4},   {DType::u32, "u32", 4, 12}, {DType::u64, "u64", 8, 13},
    {DType::boolean, "bool", 1, 9},
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
bool is_float(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16; }
bool is_signed_int(DType t) { return t >= DType::i8 && t <= DType::i64; }
bool is_unsigned_int(DType t) { return t >= DType::u8 && t <= DType::u64; }

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
  uint32_t bits = std::bit_cast<uint32_t>(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000)                                   // subnormal half: scale so that rint rounds the last bit
    return uint16_t(sign | uint32_t(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24))));
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return uint16_t(sign | ((rounded - 0x38000000) >> 13));
}

float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

uint16_t f32_to_bf16(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 64);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
}  // namespace tw
