/* Arithmetic on elements of any type. Floats are computed in double, and a sum or product of two
 * narrower floats then rounds as their own arithmetic would. Integers wrap. There is no 64-bit
 * division and no conversion between int64_t and floats, as ARMv7 has no instructions for them. */
#ifndef TW_NUMBERS_H
#define TW_NUMBERS_H
#include "elements.h"

typedef union {
  float f;
  uint32_t u;
} number_f32;
typedef union {
  double f;
  uint64_t u;
} number_f64;

static inline int is_real(int32_t dtype) {
  return dtype == TW_F32 || dtype == TW_F64 || dtype == TW_F16 || dtype == TW_BF16;
}
static inline int is_signed(int32_t dtype) {
  return dtype == TW_I8 || dtype == TW_I16 || dtype == TW_I32 || dtype == TW_I64;
}

static inline float half_to_float(uint16_t h) {
  number_f32 out, scale = {.u = 0x77800000 /* 2^112 */};
  out.u = (uint32_t)(h & 0x7fff) << 13;
  if ((h & 0x7c00) == 0x7c00) out.u |= 0x7f800000;
  else out.f *= scale.f; /* re-biases the exponent, normal or not */
  out.u |= (uint32_t)(h & 0x8000) << 16;
  return out.f;
}

/* value >> shift, rounded to nearest, ties to even; 1 <= shift <= 63. */
static inline uint64_t rounded_shift(uint64_t value, int shift) {
  uint64_t kept = value >> shift, lost = value & (((uint64_t)1 << shift) - 1),
           half = (uint64_t)1 << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

static inline uint16_t double_to_half(double value) {
  number_f64 in = {value};
  uint16_t sign = (uint16_t)(in.u >> 48 & 0x8000);
  uint64_t mantissa = in.u & 0xfffffffffffffu;
  int exponent = (int)(in.u >> 52 & 0x7ff);
  if (exponent == 0x7ff) return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 | mantissa >> 42 : 0));
  exponent -= 1023 - 15;
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign; /* below 2^-25, half of the smallest half */
  if (exponent <= 0)
    return (uint16_t)(sign | rounded_shift(mantissa | (uint64_t)1 << 52, 43 - exponent));
  return (uint16_t)(sign + rounded_shift((uint64_t)exponent << 52 | mantissa,
                                         42)); /* a carry moves into the exponent, up to infinity */
}

/* Rounds once. Rounding to the nearest float first would round twice, so the float is made odd
 * where it is inexact. */
static inline uint16_t double_to_bf16(double value) {
  number_f32 f = {(float)value};
  if ((f.u & 0x7fffffff) > 0x7f800000) return (uint16_t)(f.u >> 16 | 0x40);
  if ((double)f.f != value && (f.u & 0x7f800000) != 0x7f800000) {
    const int away = ((double)f.f > value) ==
                     ((f.u >> 31) == 0); /* the float has the larger magnitude */
    if (away) --f.u;
    f.u |= 1;
  }
  return (uint16_t)rounded_shift(f.u, 16);
}

static inline double real_at(const void* data, int64_t i, int32_t dtype) {
  number_f32 wide;
  switch (dtype) {
    case TW_F64: return ((const double*)data)[i];
    case TW_F32: return ((const float*)data)[i];
    case TW_F16: return half_to_float(((const uint16_t*)data)[i]);
    default: wide.u = (uint32_t)((const uint16_t*)data)[i] << 16; return wide.f;
  }
}

static inline void set_real(void* data, int64_t i, int32_t dtype, double value) {
  switch (dtype) {
    case TW_F64: ((double*)data)[i] = value; break;
    case TW_F32: ((float*)data)[i] = (float)value; break;
    case TW_F16: ((uint16_t*)data)[i] = double_to_half(value); break;
    default: ((uint16_t*)data)[i] = double_to_bf16(value); break;
  }
}

/* The element, sign- or zero-extended */
static inline uint64_t integer_at(const void* data, int64_t i, int32_t dtype) {
  switch (dtype) {
    case TW_I64:
    case TW_U64: return ((const uint64_t*)data)[i];
    case TW_I32: return (uint64_t)(int64_t)((const int32_t*)data)[i];
    case TW_U32: return ((const uint32_t*)data)[i];
    case TW_I16: return (uint64_t)(int64_t)((const int16_t*)data)[i];
    case TW_U16: return ((const uint16_t*)data)[i];
    case TW_I8: return (uint64_t)(int64_t)((const int8_t*)data)[i];
    default: return ((const uint8_t*)data)[i];
  }
}

static inline void set_integer(void* data, int64_t i, int32_t dtype, uint64_t value) {
  switch (element_bytes(dtype)) {
    case 8: ((uint64_t*)data)[i] = value; break;
    case 4: ((uint32_t*)data)[i] = (uint32_t)value; break;
    case 2: ((uint16_t*)data)[i] = (uint16_t)value; break;
    default: ((uint8_t*)data)[i] = (uint8_t)value; break;
  }
}
#endif
