/* x86-64: CPUID describes the processor, XGETBV the registers that the system saves. */
#include "cpu.h"

#if defined(__x86_64__)
typedef struct tw_feature {
  const char* name;
  uint32_t leaf, sub, reg, bit, xcr0;
} tw_feature;

#define FEATURE(name, leaf, sub, reg, bit, xcr0) {name, leaf, sub, reg, bit, xcr0},
static const tw_feature kFeatures[] = {
#include "x86.def"
};
#undef FEATURE

static void cpuid(uint32_t leaf, uint32_t sub, uint32_t r[4]) {
  __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
}

static uint32_t system_state(void) { /* XCR0; 0 when the system does not use XSAVE */
  uint32_t r[4], low, high;
  cpuid(1, 0, r);
  if (!(r[2] >> 27 & 1)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* Linux gives the state of tile registers only to processes that ask for it. */
static int granted(uint32_t xcr0) {
  const long request = 0x1023, tiles = 18; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
  return !(xcr0 >> tiles & 1) || syscall(158L /* arch_prctl */, request, tiles) == 0;
}

static int present(const tw_feature* f) {
  uint32_t r[4];
  cpuid(f->leaf & 0x80000000u, 0, r);
  if (f->leaf > r[0]) return 0;
  if (f->sub) {
    cpuid(f->leaf, 0, r);
    if (f->sub > r[0]) return 0;
  }
  cpuid(f->leaf, f->sub, r);
  if (!(r[f->reg] >> f->bit & 1)) return 0;
  return f->xcr0 == 0 || ((system_state() & f->xcr0) == f->xcr0 && granted(f->xcr0));
}

int tw_cpu_has(const char* name, int32_t length) {
  for (size_t i = 0; i < sizeof kFeatures / sizeof kFeatures[0]; ++i)
    if (tw_name_is(name, length, kFeatures[i].name)) return present(&kFeatures[i]);
  return 0;
}
#endif
