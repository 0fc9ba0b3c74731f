/* The functions of runtime/core/soft_double.c against the processor's own doubles, on numbers of
 * all kinds. Prints the first ten that differ. */
#define TW_TEST_SOFT_DOUBLE
#include "runtime/core/soft_double.c"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static uint64_t random_bits(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* Returns a special number, any bits, a number near 1, a tiny number, or a whole one. */
static uint64_t some_number(void) {
  static const uint64_t special[] = {0,
                                     D_SIGN,
                                     D_INFINITE,
                                     D_INFINITE | D_SIGN,
                                     D_NAN,
                                     1,
                                     0xfffffffffffff,
                                     0x10000000000000,
                                     0x3ff0000000000000,
                                     0x7fefffffffffffff,
                                     0x41dfffffffc00000,
                                     0x41f0000000000000};
  const uint64_t choice = random_bits(), bits = random_bits();
  const uint64_t fraction = bits & (D_SIGN | (((uint64_t)1 << D_BITS) - 1));
  switch (choice % 5) {
    case 0: return special[(choice >> 8) % (sizeof special / sizeof *special)];
    case 1: return bits;
    case 2: return fraction | (uint64_t)(D_BIAS - 60 + (int)((choice >> 8) % 120)) << D_BITS;
    case 3: return fraction | (choice >> 8) % 3 << D_BITS;
    default: return __aeabi_i2d((int32_t)bits);
  }
}

static double value(uint64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
static uint64_t one_nan(uint64_t bits) { return d_is_nan(bits) ? D_NAN : bits; }
static uint64_t bits_of(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return one_nan(bits);
}

static int wrong;
static void check(const char* what, uint64_t a, uint64_t b, uint64_t got, uint64_t expected) {
  if (got == expected || ++wrong > 10) return;
  printf("%s of %016lx, %016lx: %016lx, not %016lx\n", what, (unsigned long)a, (unsigned long)b,
         (unsigned long)got, (unsigned long)expected);
}

static void check_pair(uint64_t a, uint64_t b) {
  const double x = value(a), y = value(b);
  check("add", a, b, one_nan(__aeabi_dadd(a, b)), bits_of(x + y));
  check("sub", a, b, one_nan(__aeabi_dsub(a, b)), bits_of(x - y));
  check("mul", a, b, one_nan(__aeabi_dmul(a, b)), bits_of(x * y));
  check("div", a, b, one_nan(__aeabi_ddiv(a, b)), bits_of(x / y));
  check("lt", a, b, (uint64_t)__aeabi_dcmplt(a, b), x < y);
  check("le", a, b, (uint64_t)__aeabi_dcmple(a, b), x <= y);
  check("gt", a, b, (uint64_t)__aeabi_dcmpgt(a, b), x > y);
  check("ge", a, b, (uint64_t)__aeabi_dcmpge(a, b), x >= y);
  check("eq", a, b, (uint64_t)__aeabi_dcmpeq(a, b), x == y);
  check("un", a, b, (uint64_t)__aeabi_dcmpun(a, b), x != x || y != y);
}

static void check_fused(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t got = one_nan(d_fma(a, b, c)),
                 expected = bits_of(fma(value(a), value(b), value(c)));
  check("fma", a ^ b, c, got, expected);
}

static void check_casts(uint64_t a, uint32_t word) {
  const double x = value(a);
  float f = (float)x, g;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  memcpy(&g, &word, sizeof g);
  if (x == x) check("d2f", a, 0, __aeabi_d2f(a), bits);
  check("f2d", word, 0, one_nan(__aeabi_f2d(word)), bits_of((double)g));
  check("i2d", word, 0, __aeabi_i2d((int32_t)word), bits_of((int32_t)word));
  check("ui2d", word, 0, __aeabi_ui2d(word), bits_of(word));
  if (x > -1 && x < 4294967296.0) check("d2uiz", a, 0, __aeabi_d2uiz(a), (uint32_t)x);
  if (x > -2147483649.0 && x < 2147483648.0)
    check("d2iz", a, 0, (uint32_t)__aeabi_d2iz(a), (uint32_t)(int32_t)x);
}

int main(void) {
  for (int i = 0; i < 2000000; ++i) {
    const uint64_t a = some_number();
    check_pair(a, i % 8 ? some_number() : a ^ (random_bits() & 3));
    const uint64_t b = some_number();
    check_fused(a, b, some_number());
    check_fused(a, b, __aeabi_dmul(a, b) ^ D_SIGN ^ (random_bits() & 3)); /* nearly cancels */
    check_casts(a, (uint32_t)random_bits());
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
