/* Walks the feature list. x86.c and hwcap.c define the features. */
#include "cpu.h"

int tw_cpu_has_all(const char* list) {
  while (*list) {
    const char* end = list;
    while (*end && *end != ',') ++end;
    if (end != list && !tw_cpu_has(list, (int32_t)(end - list))) return 0;
    list = *end ? end + 1 : end;
  }
  return 1;
}
