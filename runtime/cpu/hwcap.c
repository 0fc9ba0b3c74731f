/* AArch64, ARMv7, RISC-V: the auxiliary vector has the system's own list of usable features. */
#include "cpu.h"

#if !defined(__x86_64__)
typedef struct tw_feature {
  const char* name;
  uint32_t word, bits;
} tw_feature;

#define FEATURE(name, word, bits) {name, word, bits},
static const tw_feature kFeatures[] = {
#if defined(__aarch64__)
#include "aarch64.def"
#elif defined(__riscv)
#include "riscv.def"
#else
#include "arm.def"
#endif
};
#undef FEATURE

static void read_hwcap(unsigned long words[2]) {
  _Alignas(16) char data[2048];
  int32_t bytes = tw_read_file("/proc/self/auxv", data, sizeof data);
  for (int32_t at = 0; at + (int32_t)(2 * sizeof(long)) <= bytes; at += 2 * sizeof(long)) {
    unsigned long entry[2];
    memcpy(entry, data + at, sizeof entry);
    if (entry[0] == 16 /* AT_HWCAP */) words[0] = entry[1];
    if (entry[0] == 26 /* AT_HWCAP2 */) words[1] = entry[1];
  }
}

int tw_cpu_has(const char* name, int32_t length) {
  unsigned long words[2] = {0, 0};
  for (size_t i = 0; i < sizeof kFeatures / sizeof kFeatures[0]; ++i) {
    if (!tw_name_is(name, length, kFeatures[i].name)) continue;
    read_hwcap(words);
    return (words[kFeatures[i].word] & kFeatures[i].bits) == kFeatures[i].bits;
  }
  return 0;
}
#endif
