/* Checks that this processor, under this system, has the features that the code was compiled
 * for. */
#ifndef TW_CPU_H
#define TW_CPU_H
#include "../sys.h"

/* 1: the feature `name` (of `length` characters, LLVM's spelling) is known and present. Each
 * architecture has its own definition. */
int tw_cpu_has(const char* name, int32_t length);

/* 1: all features of a comma-separated list are present. An unknown name counts as missing, as the
 * code must not run unchecked. */
int tw_cpu_has_all(const char* list);

/* 1: text[0..length) is `name`. */
static inline int tw_name_is(const char* text, int32_t length, const char* name) {
  for (; length > 0 && *name && *text == *name; ++text, ++name, --length) {}
  return length == 0 && *name == 0;
}
#endif
