/* Doubles for processors without them: the functions of the ARM run-time ABI, on the bits of the
 * numbers. They round to nearest, ties to even, and treat subnormals, infinities and NaN as IEEE
 * 754 does. The processor itself has single precision. */
#include "../sys.h"

#if (defined(__arm__) && !(__ARM_FP & 8)) || defined(TW_TEST_SOFT_DOUBLE)
#ifndef TW_HELPER
#define TW_HELPER
#endif

enum { D_BITS = 52, D_BIAS = 1023, D_MOST = 0x7ff, F_BITS = 23, F_BIAS = 127, F_MOST = 0xff };
#define D_SIGN ((uint64_t)1 << 63)
#define D_INFINITE ((uint64_t)D_MOST << D_BITS)
#define D_NAN (D_INFINITE | (uint64_t)1 << 51)

static int d_is_nan(uint64_t a) { return (a & ~D_SIGN) > D_INFINITE; }
static int d_is_infinite(uint64_t a) { return (a & ~D_SIGN) == D_INFINITE; }

/* A finite number other than zero: significand * 2^exponent, with the highest bit of the
 * significand set. */
typedef struct d_parts {
  uint64_t significand;
  int exponent;
} d_parts;
static d_parts d_unpack(uint64_t a) {
  uint64_t fraction = a & (((uint64_t)1 << D_BITS) - 1);
  int biased = (int)(a >> D_BITS & D_MOST);
  d_parts p = {biased ? fraction | (uint64_t)1 << D_BITS : fraction,
               (biased ? biased : 1) - D_BIAS - D_BITS};
  int shift = __builtin_clzll(p.significand);
  p.significand <<= shift;
  p.exponent -= shift;
  return p;
}

/* value >> shift; the lowest bit is set where a bit is lost. */
static uint64_t shift_jam(uint64_t value, int shift) {
  if (shift > 63) return value != 0;
  return shift <= 0 ? value : value >> shift | ((value << (64 - shift)) != 0);
}

/* significand * 2^exponent, rounded to a format with `bits` bits of fraction. The result has no
 * sign bit. */
static uint64_t round_to(uint64_t significand, int exponent, int bits, int bias, int most) {
  if (significand == 0) return 0;
  int up = __builtin_clzll(significand);
  significand <<= up;
  int biased = exponent - up + 63 + bias;
  if (biased >= most) return (uint64_t)most << bits;
  /* Two bits more than the format has; the lower one stands for all lost bits. */
  uint64_t kept = shift_jam(significand, 63 - bits - 2 + (biased > 0 ? 0 : 1 - biased));
  uint64_t rounded = (kept >> 2) + ((kept & 3) == 3 || (kept & 7) == 6);
  return biased > 0 ? ((uint64_t)(biased - 1) << bits) + rounded : rounded;
}
static uint64_t d_round(uint64_t sign, uint64_t significand, int exponent) {
  return sign | round_to(significand, exponent, D_BITS, D_BIAS, D_MOST);
}

TW_HELPER uint64_t __aeabi_dadd(uint64_t a, uint64_t b) {
  if (d_is_nan(a) || d_is_nan(b)) return D_NAN;
  if (d_is_infinite(a)) return d_is_infinite(b) && a != b ? D_NAN : a;
  if (d_is_infinite(b)) return b;
  if (!(a & ~D_SIGN)) return b & ~D_SIGN ? b : a & b;
  if (!(b & ~D_SIGN)) return a;
  if ((a & ~D_SIGN) < (b & ~D_SIGN)) { /* makes a the larger one */
    uint64_t t = a;
    a = b;
    b = t;
  }
  d_parts x = d_unpack(a), y = d_unpack(b);
  /* One bit of room for the sum; eleven bits for what is shifted out. */
  uint64_t large = x.significand >> 1;
  uint64_t small = shift_jam(y.significand >> 1, x.exponent - y.exponent);
  if ((a ^ b) & D_SIGN) {
    if (large == small) return 0;
    return d_round(a & D_SIGN, large - small, x.exponent + 1);
  }
  return d_round(a & D_SIGN, large + small, x.exponent + 1);
}
TW_HELPER uint64_t __aeabi_dsub(uint64_t a, uint64_t b) { return __aeabi_dadd(a, b ^ D_SIGN); }
TW_HELPER uint64_t __aeabi_drsub(uint64_t a, uint64_t b) { return __aeabi_dadd(a ^ D_SIGN, b); }

typedef struct d_wide { /* 128 bits */
  uint64_t high, low;
} d_wide;
static d_wide wide_product(uint64_t a, uint64_t b) {
  uint64_t ah = a >> 32, al = (uint32_t)a, bh = b >> 32, bl = (uint32_t)b;
  uint64_t low = al * bl, middle = ah * bl + (low >> 32), other = al * bh + (uint32_t)middle;
  return (d_wide){ah * bh + (middle >> 32) + (other >> 32), other << 32 | (uint32_t)low};
}
static d_wide wide_shift_jam(d_wide v, int shift) {
  if (shift > 127) return (d_wide){0, (v.high | v.low) != 0};
  if (shift > 63) return (d_wide){0, shift_jam(v.high, shift - 64) | (v.low != 0)};
  if (shift == 0) return v;
  return (d_wide){v.high >> shift, v.high << (64 - shift) | shift_jam(v.low, shift)};
}
static d_wide wide_add(d_wide a, d_wide b) {
  uint64_t low = a.low + b.low;
  return (d_wide){a.high + b.high + (low < b.low), low};
}
static d_wide wide_subtract(d_wide a, d_wide b) {
  return (d_wide){a.high - b.high - (a.low < b.low), a.low - b.low};
}

TW_HELPER uint64_t __aeabi_dmul(uint64_t a, uint64_t b) {
  uint64_t sign = (a ^ b) & D_SIGN;
  if (d_is_nan(a) || d_is_nan(b)) return D_NAN;
  if (d_is_infinite(a) || d_is_infinite(b))
    return a & ~D_SIGN && b & ~D_SIGN ? sign | D_INFINITE : D_NAN;
  if (!(a & ~D_SIGN) || !(b & ~D_SIGN)) return sign;
  d_parts x = d_unpack(a), y = d_unpack(b);
  d_wide product = wide_product(x.significand, y.significand);
  return d_round(sign, product.high | (product.low != 0), x.exponent + y.exponent + 64);
}

/* a * b + c, rounded once. None of them is zero, infinite or NaN. */
static uint64_t fused(uint64_t a, uint64_t b, uint64_t c) {
  d_parts x = d_unpack(a), y = d_unpack(b), z = d_unpack(c);
  uint64_t sign = (a ^ b) & D_SIGN;
  /* One bit of room; the bits that these shifts drop are zeros. */
  d_wide large = wide_product(x.significand, y.significand), small = {z.significand >> 1, 0};
  int exponent = x.exponent + y.exponent, other = z.exponent - 64 + 1;
  int room = (int)(large.high >> 63);
  large = wide_shift_jam(large, room);
  exponent += room;
  int subtracts = ((sign ^ c) & D_SIGN) != 0;
  if (other > exponent ||
      (other == exponent &&
       (small.high > large.high || (small.high == large.high && small.low > large.low)))) {
    d_wide t = large;
    large = small;
    small = t;
    int e = exponent;
    exponent = other;
    other = e;
    sign = c & D_SIGN;
  }
  small = wide_shift_jam(small, exponent - other);
  d_wide sum = subtracts ? wide_subtract(large, small) : wide_add(large, small);
  if (!(sum.high | sum.low)) return 0;
  if (!sum.high) return d_round(sign, sum.low, exponent);
  int up = __builtin_clzll(sum.high);
  if (up) sum.high = sum.high << up | sum.low >> (64 - up), sum.low <<= up;
  return d_round(sign, sum.high | (sum.low != 0), exponent - up + 64);
}
static uint64_t d_fma(uint64_t a, uint64_t b, uint64_t c) {
  if (d_is_nan(a) || d_is_nan(b) || d_is_nan(c)) return D_NAN;
  if (d_is_infinite(a) || d_is_infinite(b) || d_is_infinite(c) || !(a & ~D_SIGN) ||
      !(b & ~D_SIGN) || !(c & ~D_SIGN)) { /* only one of the two operations rounds */
    uint64_t product = d_is_infinite(c) && !d_is_infinite(a) && !d_is_infinite(b)
                           ? (a ^ b) & D_SIGN
                           : __aeabi_dmul(a, b);
    /* A tiny product may round to a zero of its own sign; + 0 would make it positive. */
    if (a & ~D_SIGN && b & ~D_SIGN && !(c & ~D_SIGN)) return product;
    return __aeabi_dadd(product, c);
  }
  return fused(a, b, c);
}
#ifndef TW_TEST_SOFT_DOUBLE
/* The C library's fma, which passes doubles in its own way. */
typedef union {
  double f;
  uint64_t u;
} d_bits;
TW_HELPER double fma(double a, double b, double c) {
  d_bits x = {a}, y = {b}, z = {c}, r;
  r.u = d_fma(x.u, y.u, z.u);
  return r.f;
}
#endif

TW_HELPER uint64_t __aeabi_ddiv(uint64_t a, uint64_t b) {
  uint64_t sign = (a ^ b) & D_SIGN;
  if (d_is_nan(a) || d_is_nan(b)) return D_NAN;
  if (d_is_infinite(a)) return d_is_infinite(b) ? D_NAN : sign | D_INFINITE;
  if (d_is_infinite(b)) return sign;
  if (!(b & ~D_SIGN)) return a & ~D_SIGN ? sign | D_INFINITE : D_NAN;
  if (!(a & ~D_SIGN)) return sign;
  d_parts x = d_unpack(a), y = d_unpack(b);
  uint64_t rest = x.significand >> 11, divisor = y.significand >> 11, quotient = 0;
  for (int i = 0; i < 57; ++i) {
    quotient <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      quotient |= 1;
    }
    rest <<= 1;
  }
  return d_round(sign, quotient | (rest != 0), x.exponent - y.exponent - 56);
}

/* The order as -1, 0 or 1; 2: one of them is NaN. */
static int d_compare(uint64_t a, uint64_t b) {
  if (d_is_nan(a) || d_is_nan(b)) return 2;
  if (!((a | b) & ~D_SIGN) || a == b) return 0;
  if ((a ^ b) & D_SIGN) return a & D_SIGN ? -1 : 1;
  return (a < b) != ((a & D_SIGN) != 0) ? -1 : 1;
}
TW_HELPER int __aeabi_dcmpeq(uint64_t a, uint64_t b) { return d_compare(a, b) == 0; }
TW_HELPER int __aeabi_dcmplt(uint64_t a, uint64_t b) { return d_compare(a, b) == -1; }
TW_HELPER int __aeabi_dcmple(uint64_t a, uint64_t b) { return d_compare(a, b) <= 0; }
TW_HELPER int __aeabi_dcmpgt(uint64_t a, uint64_t b) { return d_compare(a, b) == 1; }
TW_HELPER int __aeabi_dcmpge(uint64_t a, uint64_t b) {
  int order = d_compare(a, b);
  return order == 0 || order == 1;
}
TW_HELPER int __aeabi_dcmpun(uint64_t a, uint64_t b) { return d_compare(a, b) == 2; }

/* Floats are passed as bits, too: the ABI uses general registers for them. */
TW_HELPER uint32_t __aeabi_d2f(uint64_t a) {
  uint32_t sign = (uint32_t)(a >> 32) & 0x80000000u;
  if (d_is_nan(a)) return sign | 0x7fc00000u;
  if (d_is_infinite(a)) return sign | 0x7f800000u;
  if (!(a & ~D_SIGN)) return sign;
  d_parts x = d_unpack(a);
  return sign | (uint32_t)round_to(x.significand, x.exponent, F_BITS, F_BIAS, F_MOST);
}
TW_HELPER uint64_t __aeabi_f2d(uint32_t a) {
  uint64_t sign = (uint64_t)(a & 0x80000000u) << 32;
  uint32_t fraction = a & 0x7fffff;
  int biased = (int)(a >> F_BITS & F_MOST);
  if (biased == F_MOST) return sign | (fraction ? D_NAN : D_INFINITE);
  return d_round(sign, biased ? fraction | 0x800000 : fraction,
                 (biased ? biased : 1) - F_BIAS - F_BITS);
}
TW_HELPER uint64_t __aeabi_ui2d(uint32_t a) { return d_round(0, a, 0); }
TW_HELPER uint64_t __aeabi_i2d(int32_t a) {
  return a < 0 ? d_round(D_SIGN, 0 - (uint32_t)a, 0) : d_round(0, (uint32_t)a, 0);
}

/* a| rounded toward zero, at most `most`; 0 for NaN. */
static uint32_t d_magnitude(uint64_t a, uint32_t most) {
  if (d_is_nan(a) || (a & ~D_SIGN) < (uint64_t)D_BIAS << D_BITS) return 0; /* below 1 */
  if (d_is_infinite(a)) return most;
  d_parts x = d_unpack(a);
  if (x.exponent + 63 > 31) return most;
  uint32_t whole = (uint32_t)(x.significand >> -x.exponent);
  return whole < most ? whole : most;
}
TW_HELPER uint32_t __aeabi_d2uiz(uint64_t a) { return a & D_SIGN ? 0 : d_magnitude(a, UINT32_MAX); }
TW_HELPER int32_t __aeabi_d2iz(uint64_t a) {
  return a & D_SIGN ? (int32_t)(0 - d_magnitude(a, 0x80000000u))
                    : (int32_t)d_magnitude(a, INT32_MAX);
}
#endif
