/* Functions that LLVM calls where a baseline processor lacks an instruction: conversions of halves
 * and bfloat16 (x86-64 without F16C, RISC-V), division, and conversions of 64-bit integers (ARMv7).
 * They round to nearest, ties to even. `used` keeps them visible to the artifact's other
 * objects. */
#include "sys.h"

#define TW_HELPER __attribute__((used, visibility("hidden")))

#if defined(__x86_64__) || defined(__riscv)
typedef union {
  float f;
  uint32_t u;
} tw_f32_bits;
typedef union {
  double f;
  uint64_t u;
} tw_f64_bits;
typedef union {
  _Float16 f;
  uint16_t u;
} tw_f16_bits;
typedef union {
  __bf16 f;
  uint16_t u;
} tw_bf16_bits;

/* value >> shift, rounded to nearest, ties to even; 1 <= shift <= 63. */
static uint64_t round_shift(uint64_t value, int shift) {
  uint64_t kept = value >> shift, lost = value & (((uint64_t)1 << shift) - 1),
           half = (uint64_t)1 << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

/* Rounds a double's bits to a half. A double holds every float, so floats may come through it. */
static uint16_t narrow(uint64_t bits) {
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  uint64_t mantissa = bits & 0xfffffffffffffu;
  int exponent = (int)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 | mantissa >> 42 : 0));
  exponent -= 1023 - 15;
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign; /* below 2^-25, half of the smallest half */
  if (exponent <= 0)
    return (uint16_t)(sign | round_shift(mantissa | (uint64_t)1 << 52, 43 - exponent));
  return (uint16_t)(sign + round_shift((uint64_t)exponent << 52 | mantissa,
                                       42)); /* a carry moves into the exponent, up to infinity */
}

TW_HELPER _Float16 __truncdfhf2(double value) {
  tw_f64_bits in = {value};
  tw_f16_bits out;
  out.u = narrow(in.u);
  return out.f;
}
TW_HELPER _Float16 __truncsfhf2(float value) { return __truncdfhf2((double)value); }

TW_HELPER float __extendhfsf2(_Float16 value) {
  tw_f16_bits in;
  tw_f32_bits out, scale = {.u = 0x77800000 /* 2^112 */};
  in.f = value;
  out.u = (uint32_t)(in.u & 0x7fff) << 13;
  if ((in.u & 0x7c00) == 0x7c00) out.u |= 0x7f800000;
  else out.f *= scale.f; /* re-biases the exponent, normal or not */
  out.u |= (uint32_t)(in.u & 0x8000) << 16;
  return out.f;
}

TW_HELPER __bf16 __truncsfbf2(float value) {
  tw_f32_bits in = {value};
  tw_bf16_bits out;
  out.u = (in.u & 0x7fffffff) > 0x7f800000 ? (uint16_t)(in.u >> 16 | 0x40)
                                           : (uint16_t)round_shift(in.u, 16);
  return out.f;
}
#endif

#if defined(__arm__)
/* Helpers of the ARM run-time ABI. It passes floats in general registers, whatever registers the
 * processor has. */
#define TW_ARM_HELPER TW_HELPER __attribute__((pcs("aapcs")))

static uint64_t divide64(uint64_t n, uint64_t d, uint64_t* rest) {
  uint64_t q = 0;
  if (d != 0 && n >= d) {
    for (int bit = __builtin_clzll(d) - __builtin_clzll(n); bit >= 0; --bit) {
      if (n < d << bit) continue;
      n -= d << bit;
      q |= (uint64_t)1 << bit;
    }
  }
  *rest = n;
  return q;
}
static uint64_t magnitude64(int64_t v) { return v < 0 ? 0 - (uint64_t)v : (uint64_t)v; }

/* Returns the quotient in the low word and the remainder in the high one: the registers of
 * *divmod. */
static uint64_t divide(uint32_t n, uint32_t d) {
  uint32_t q = 0;
  if (d != 0 && n >= d) {
    for (int bit = __builtin_clz(d) - __builtin_clz(n); bit >= 0; --bit) {
      if (n < d << bit) continue;
      n -= d << bit;
      q |= (uint32_t)1 << bit;
    }
  }
  return (uint64_t)n << 32 | q;
}
static uint32_t magnitude(int32_t v) { return v < 0 ? 0 - (uint32_t)v : (uint32_t)v; }

TW_HELPER uint64_t __aeabi_uidivmod(uint32_t n, uint32_t d) { return divide(n, d); }
TW_HELPER uint32_t __aeabi_uidiv(uint32_t n, uint32_t d) { return (uint32_t)divide(n, d); }
TW_HELPER uint64_t __aeabi_idivmod(int32_t n, int32_t d) {
  uint64_t both = divide(magnitude(n), magnitude(d));
  uint32_t q = (uint32_t)both, r = (uint32_t)(both >> 32);
  if ((n < 0) != (d < 0)) q = 0 - q;
  if (n < 0) r = 0 - r;
  return (uint64_t)r << 32 | q;
}
TW_HELPER int32_t __aeabi_idiv(int32_t n, int32_t d) { return (int32_t)__aeabi_idivmod(n, d); }

/* These return the quotient in r0 and r1 and the remainder in r2 and r3, which C cannot express. */
TW_HELPER uint64_t tw_udivmod(uint64_t n, uint64_t d, uint64_t* rest) {
  return divide64(n, d, rest);
}
TW_HELPER int64_t tw_divmod(int64_t n, int64_t d, int64_t* rest) {
  uint64_t r, q = divide64(magnitude64(n), magnitude64(d), &r);
  *rest = (int64_t)(n < 0 ? 0 - r : r);
  return (int64_t)((n < 0) != (d < 0) ? 0 - q : q);
}
#define TW_DIVMOD(name, body)                                                                    \
  TW_HELPER __attribute__((naked)) void name(void) {                                             \
    __asm__("push {r11, lr}\n\tsub sp, sp, #16\n\tadd r11, sp, #8\n\tstr r11, [sp]\n\tbl " #body \
            "\n\tldrd r2, r3, [sp, #8]\n\tadd sp, sp, #16\n\tpop {r11, pc}");                    \
  }
TW_DIVMOD(__aeabi_uldivmod, tw_udivmod)
TW_DIVMOD(__aeabi_ldivmod, tw_divmod)

static double to_double(uint64_t v) {
  return (double)(uint32_t)(v >> 32) * 0x1p32 + (double)(uint32_t)v;
} /* one rounding: both terms are exact */
static float to_float(uint64_t v) { /* the bits that a double cannot hold become one sticky bit, so
                                       that nothing is rounded twice */
  if (v >> 53) v = (v >> 11 | ((v & 0x7ff) != 0)) << 11;
  return (float)to_double(v);
}
static uint64_t from_double(double v) {
  uint32_t high = (uint32_t)(v * 0x1p-32);
  return (uint64_t)high << 32 | (uint32_t)(v - (double)high * 0x1p32);
}
TW_ARM_HELPER double __aeabi_ul2d(uint64_t v) { return to_double(v); }
TW_ARM_HELPER double __aeabi_l2d(int64_t v) {
  return v < 0 ? -to_double(magnitude64(v)) : to_double((uint64_t)v);
}
TW_ARM_HELPER float __aeabi_ul2f(uint64_t v) { return to_float(v); }
TW_ARM_HELPER float __aeabi_l2f(int64_t v) {
  return v < 0 ? -to_float(magnitude64(v)) : to_float((uint64_t)v);
}
TW_ARM_HELPER uint64_t __aeabi_d2ulz(double v) { return from_double(v); }
TW_ARM_HELPER int64_t __aeabi_d2lz(double v) {
  return (int64_t)(v < 0 ? 0 - from_double(-v) : from_double(v));
}
TW_ARM_HELPER uint64_t __aeabi_f2ulz(float v) { return from_double((double)v); }
TW_ARM_HELPER int64_t __aeabi_f2lz(float v) { return __aeabi_d2lz((double)v); }
#endif
