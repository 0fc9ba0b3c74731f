// Prints this machine's peak of fused (or separate) multiply-and-add in GFLOP/s of one core, for the instruction set that it is
// compiled for:  clang-22 -O2 -march=x86-64-v3 bench/peak.c -o peak && ./peak
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
#pragma STDC FP_CONTRACT ON   // a * b + c in one expression is one instruction
#endif
enum { CHAINS = 12, STEPS = 20000, REPEATS = 400 };   // 12 sums in flight hide the latency with 16 registers

#if defined(__aarch64__)
#define IN_REGISTER(value) "+w"(value)
#elif LANES == 16
#define IN_REGISTER(value) "+v"(value)
#else
#define IN_REGISTER(value) "+x"(value)
#endif

typedef float Vector __attribute__((vector_size(4 * LANES)));

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run(Vector a, Vector b) {
  Vector s[CHAINS];
  for (int i = 0; i < CHAINS; ++i) s[i] = a * (float)i;
  const double start = seconds();
  for (int k = 0; k < STEPS; ++k) {
#pragma clang loop unroll(full)
    for (int i = 0; i < CHAINS; ++i) {
      s[i] = a * b + s[i];
      __asm__ volatile("" : IN_REGISTER(a));   // the product is not lifted out of the loop
    }
  }
  const double time = seconds() - start;
  Vector sum = s[0];
  for (int i = 1; i < CHAINS; ++i) sum += s[i];
  __asm__ volatile("" : IN_REGISTER(sum));
  return 2.0 * LANES * CHAINS * STEPS / time * 1e-9;
}

int main(void) {
  double best = 0;
  Vector a = {0.5f}, b = {0.25f};
  for (int r = 0; r < REPEATS; ++r) {
    const double rate = run(a, b);
    if (rate > best) best = rate;
  }
  printf("%d lanes: %.1f GFLOP/s\n", LANES, best);
  return 0;
}
