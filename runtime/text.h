/* A bounded text buffer, which does the work of snprintf without libc. Text that does not fit is
 * cut. */
#ifndef TW_TEXT_H
#define TW_TEXT_H
#include <stddef.h>
#include <stdint.h>

typedef struct tw_text {
  char* data;
  int32_t length, capacity; /* capacity includes the closing NUL */
} tw_text;

static inline void text_clear(tw_text* t) {
  t->length = 0;
  t->data[0] = 0;
}
static inline void text_add(tw_text* t, const char* s) {
  for (; *s && t->length + 1 < t->capacity; ++s) t->data[t->length++] = *s;
  t->data[t->length] = 0;
}
void text_add_number(tw_text* t, int64_t value);

static inline int text_same(const char* a, const char* b) {
  for (; *a && *a == *b; ++a, ++b) {}
  return *a == *b;
}
#endif
