/* What LLVM calls where a baseline processor lacks an instruction: conversions of halves and bfloat16 (x86-64 without F16C,
 * RISC-V), 32-bit division (ARMv7). `used` keeps them visible to the artifact's other objects. Round to nearest, ties to even. */
#include "sys.h"

#define TW_HELPER __attribute__((used, visibility("hidden")))

#if defined(__x86_64__) || defined(__riscv)
typedef union { float f; uint32_t u; } tw_f32_bits;
typedef union { double f; uint64_t u; } tw_f64_bits;
typedef union { _Float16 f; uint16_t u; } tw_f16_bits;
typedef union { __bf16 f; uint16_t u; } tw_bf16_bits;

/* value >> shift, rounded to nearest even; 1 <= shift <= 63. */
static uint64_t round_shift(uint64_t value, int shift) {
  uint64_t kept = value >> shift, lost = value & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

/* A double's bits to a half: exact in range, so a float may come by way of a double. */
static uint16_t narrow(uint64_t bits) {
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  uint64_t mantissa = bits & 0xfffffffffffffu;
  int exponent = (int)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 | mantissa >> 42 : 0));
  exponent -= 1023 - 15;
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign;   /* below half of the smallest: 2^-25 */
  if (exponent <= 0) return (uint16_t)(sign | round_shift(mantissa | (uint64_t)1 << 52, 43 - exponent));
  return (uint16_t)(sign + round_shift((uint64_t)exponent << 52 | mantissa, 42));   /* a carry moves into the exponent, up to infinity */
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
  else out.f *= scale.f;   /* re-biases the exponent, normal or not */
  out.u |= (uint32_t)(in.u & 0x8000) << 16;
  return out.f;
}

TW_HELPER __bf16 __truncsfbf2(float value) {
  tw_f32_bits in = {value};
  tw_bf16_bits out;
  out.u = (in.u & 0x7fffffff) > 0x7f800000 ? (uint16_t)(in.u >> 16 | 0x40) : (uint16_t)round_shift(in.u, 16);
  return out.f;
}
#endif

#if defined(__arm__)
/* Quotient in the low word, remainder in the high one: the registers of the ARM run-time ABI's *divmod. */
static uint64_t divide(uint32_t n, uint32_t d) {
  uint32_t q = 0, r = 0;
  for (int bit = 31; bit >= 0; --bit) {
    uint32_t carry = r >> 31;
    r = r << 1 | (n >> bit & 1);
    if (carry || r >= d) {
      r -= d;
      q |= (uint32_t)1 << bit;
    }
  }
  return (uint64_t)r << 32 | q;
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
#endif
