#include "elements.h"
#include "print.h"
#include "system.h"

static const tw_type kTypes[] = {{"f32", "<f4", TW_F32, 4, 1},
                                 {"f64", "<f8", TW_F64, 8, 1},
                                 {"f16", "<f2", TW_F16, 2, 1},
                                 {"bf16", "|V2", TW_BF16, 2, 1},
                                 {"u8", "|u1", TW_U8, 1, 0},
                                 {"i8", "|i1", TW_I8, 1, 0},
                                 {"u16", "<u2", TW_U16, 2, 0},
                                 {"i16", "<i2", TW_I16, 2, 0},
                                 {"u32", "<u4", TW_U32, 4, 0},
                                 {"i32", "<i4", TW_I32, 4, 0},
                                 {"u64", "<u8", TW_U64, 8, 0},
                                 {"i64", "<i8", TW_I64, 8, 0},
                                 {"bool", "|b1", TW_BOOL, 1, 0},
                                 {"f8e4m3fn", 0, TW_F8E4M3FN, 1, 1},
                                 {"f8e4m3fnuz", 0, TW_F8E4M3FNUZ, 1, 1},
                                 {"f8e5m2", 0, TW_F8E5M2, 1, 1},
                                 {"f8e5m2fnuz", 0, TW_F8E5M2FNUZ, 1, 1},
                                 {"f8e8m0", 0, TW_F8E8M0, 1, 0},
                                 {"f4e2m1", 0, TW_F4E2M1, 1, 1},
                                 {"u4", 0, TW_U4, 1, 0},
                                 {"i4", 0, TW_I4, 1, 0},
                                 {"u2", 0, TW_U2, 1, 0},
                                 {"i2", 0, TW_I2, 1, 0}};
enum { kTypeCount = sizeof kTypes / sizeof kTypes[0] };

const tw_type* type_of(int32_t dtype) {
  for (int i = 0; i < kTypeCount; ++i)
    if (kTypes[i].dtype == dtype) return &kTypes[i];
  fail(kUnsupported, dtype == TW_STRING ? "strings are not read or written here: " : "a type ",
       dtype == TW_STRING ? "the C interface takes them" : "that this runner does not know", 0);
}

const tw_type* type_of_npy(const char* descr, uint64_t length) {
  for (int i = 0; i < kTypeCount && length == 3; ++i) {
    const char* npy = kTypes[i].npy;
    if (!npy || npy[1] != descr[1] || npy[2] != descr[2]) continue;
    const int any_order = kTypes[i].bytes == 1 || kTypes[i].dtype == TW_BF16;
    if (descr[0] == '<' || (any_order && (descr[0] == '|' || descr[0] == '='))) return &kTypes[i];
  }
  return 0;
}

static double power_of_two(int exponent) { /* exponent from -1074 to 1023 */
  const uint64_t bits = exponent < -1022 ? (uint64_t)1 << (exponent + 1074)
                                         : (uint64_t)(exponent + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A number of sign, exponent and fraction, without infinities and NaNs */
static double small_float(uint32_t bits, int exponent_bits, int fraction_bits, int bias) {
  const int one = 1 << fraction_bits, fraction = (int)bits & (one - 1);
  const int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double value = exponent ? (one + fraction) * power_of_two(exponent - bias - fraction_bits)
                                : fraction * power_of_two(1 - bias - fraction_bits);
  return bits >> (exponent_bits + fraction_bits) ? -value : value;
}

/* A number whose largest exponent means infinities and NaNs, as in IEEE 754 */
static double small_ieee(uint32_t bits, int exponent_bits, int fraction_bits) {
  const uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  const uint32_t sign = bits >> (exponent_bits + fraction_bits),
                 magnitude = bits & (infinity | ((1u << fraction_bits) - 1));
  if (magnitude > infinity) return __builtin_nan("");
  if (magnitude == infinity) return sign ? -__builtin_inf() : __builtin_inf();
  return small_float(bits, exponent_bits, fraction_bits, (1 << (exponent_bits - 1)) - 1);
}

double element_at(const void* data, int32_t dtype, int64_t i) {
  const uint8_t* bytes = (const uint8_t*)data; /* for types of one byte */
  switch (dtype) {
    case TW_F32: return (double)((const float*)data)[i];
    case TW_F64: return ((const double*)data)[i];
    case TW_F16: return small_ieee(((const uint16_t*)data)[i], 5, 10);
    case TW_BF16: {
      const uint32_t bits = (uint32_t)((const uint16_t*)data)[i] << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return (double)value;
    }
    case TW_F8E4M3FN:
      return (bytes[i] & 127) == 127 ? __builtin_nan("") : small_float(bytes[i], 4, 3, 7);
    case TW_F8E4M3FNUZ: return bytes[i] == 128 ? __builtin_nan("") : small_float(bytes[i], 4, 3, 8);
    case TW_F8E5M2: return small_ieee(bytes[i], 5, 2);
    case TW_F8E5M2FNUZ:
      return bytes[i] == 128 ? __builtin_nan("") : small_float(bytes[i], 5, 2, 16);
    case TW_F8E8M0: return bytes[i] == 255 ? __builtin_nan("") : power_of_two((int)bytes[i] - 127);
    case TW_F4E2M1: return small_float(bytes[i], 2, 1, 1);
    case TW_I8:
    case TW_I4:
    case TW_I2: return (double)((const int8_t*)data)[i];
    case TW_U16: return (double)((const uint16_t*)data)[i];
    case TW_I16: return (double)((const int16_t*)data)[i];
    case TW_U32: return (double)((const uint32_t*)data)[i];
    case TW_I32: return (double)((const int32_t*)data)[i];
    case TW_U64: return (double)((const uint64_t*)data)[i];
    case TW_I64: return (double)((const int64_t*)data)[i];
    default: return (double)bytes[i];
  }
}

/* Rounds a value in [-1, 1) to nearest, ties to even. */
static uint32_t small_float_of(double value, int exponent_bits, int fraction_bits, int bias) {
  const int negative = value < 0;
  if (negative) value = -value;
  int exponent = bias; /* the biased exponent: the value is below 2^(exponent - bias + 1) */
  while (exponent > 1 && value < power_of_two(exponent - bias)) --exponent;
  const double scaled = value * power_of_two(bias + fraction_bits - exponent);
  uint32_t whole = (uint32_t)scaled; /* below 2^(fraction_bits + 1) */
  const double rest = scaled - (double)whole;
  if (rest > 0.5 || (rest == 0.5 && whole & 1)) ++whole;
  const uint32_t magnitude = ((uint32_t)(exponent - 1) << fraction_bits) + whole;
  return (uint32_t)negative << (exponent_bits + fraction_bits) | magnitude;
}

/* The uz types have one zero; the bits of -0 mean NaN. */
static uint8_t without_minus_zero(uint32_t bits) { return bits == 128 ? 0 : (uint8_t)bits; }

void set_element(void* data, int32_t dtype, int64_t i, double value) {
  uint8_t* byte = (uint8_t*)data + i; /* for types of one byte */
  switch (dtype) {
    case TW_F32: ((float*)data)[i] = (float)value; return;
    case TW_F64: ((double*)data)[i] = value; return;
    case TW_F16: ((uint16_t*)data)[i] = (uint16_t)small_float_of(value, 5, 10, 15); return;
    case TW_BF16: {
      const float narrow = (float)value;
      uint32_t bits;
      memcpy(&bits, &narrow, sizeof bits);
      ((uint16_t*)data)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      return;
    }
    case TW_U16:
    case TW_I16: ((uint16_t*)data)[i] = (uint16_t)(int32_t)value; return;
    case TW_U32:
    case TW_I32: ((uint32_t*)data)[i] = (uint32_t)(int64_t)value; return;
    case TW_U64:
    case TW_I64: ((uint64_t*)data)[i] = (uint64_t)(int64_t)value; return;
    case TW_F8E4M3FN: *byte = (uint8_t)small_float_of(value, 4, 3, 7); return;
    case TW_F8E4M3FNUZ: *byte = without_minus_zero(small_float_of(value, 4, 3, 8)); return;
    case TW_F8E5M2: *byte = (uint8_t)small_float_of(value, 5, 2, 15); return;
    case TW_F8E5M2FNUZ: *byte = without_minus_zero(small_float_of(value, 5, 2, 16)); return;
    case TW_F4E2M1: *byte = (uint8_t)small_float_of(value, 2, 1, 1); return;
    default: *byte = (uint8_t)(int32_t)value; return;
  }
}

int64_t count_of(const int64_t* dims, int32_t rank, int32_t dtype) {
  int64_t count = 1, bytes = 0;
  int32_t sound = 1;
  for (int32_t i = 0; i < rank; ++i)
    sound = sound && dims[i] >= 0 && !__builtin_mul_overflow(count, dims[i], &count);
  sound = sound && !__builtin_mul_overflow(count, (int64_t)type_of(dtype)->bytes, &bytes);
  if (!sound || bytes > PTRDIFF_MAX)
    fail(kUser, "a shape has more bytes than can be counted", 0, 0);
  return count;
}
