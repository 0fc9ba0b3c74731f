/* Does this processor, under this system, have what the code was compiled for? */
#ifndef TW_CPU_H
#define TW_CPU_H
#include "../sys.h"

/* 1 when `name` (of `length` characters, LLVM's spelling) is known and present. One definition an
 * architecture. */
int tw_cpu_has(const char* name, int32_t length);

/* A comma-separated list. An unknown name counts as missing: the code may not run unchecked. */
int tw_cpu_has_all(const char* list);

/* Whether text[0..length) is `name`. */
static inline int tw_name_is(const char* text, int32_t length, const char* name) {
  for (; length > 0 && *name && *text == *name; ++text, ++name, --length) {}
  return length == 0 && *name == 0;
}
#endif
