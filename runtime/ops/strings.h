/* Strings: an element of TW_STRING is a pointer to UTF-8 text that ends with a zero byte; NULL is
 * the empty string. Kernels move all 8 bytes of an element, even where a pointer has only 4.
 * Functions that make strings put them into the memory that the run keeps for strings. */
#ifndef TW_STRINGS_H
#define TW_STRINGS_H
#include "../letter_cases.h"
#include "ops.h"

static inline const char* string_at(const tw_view* v, int64_t i) {
  const char* text = (const char*)(uintptr_t)((const uint64_t*)v->data)[i];
  return text ? text : "";
}

static inline void set_string(uint64_t* out, const char* text) { *out = (uintptr_t)text; }

static inline uint64_t string_length(const char* text) {
  uint64_t bytes = 0;
  while (text[bytes]) ++bytes;
  return bytes;
}

static inline int string_order(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return (int)(uint8_t)*a - (int)(uint8_t)*b;
}

/* Takes memory of the run, aligned to 8 bytes; NULL: there is none. */
static inline void* string_memory(const tw_op_args* a, uint64_t bytes) {
  tw_strings* s = a->strings;
  bytes = (bytes + 7) & ~(uint64_t)7;
  if (s->left < bytes && !s->more(s, bytes)) return 0;
  void* memory = s->at;
  s->at += bytes;
  s->left -= bytes;
  return memory;
}

static inline int32_t no_string_memory(const tw_op_args* a) {
  return tw_op_fail(a, TW_E_MEMORY, "no memory for the strings that the run makes", 0, 0);
}

/* A copy of the bytes with a zero behind them; NULL: no memory. */
static inline char* new_string(const tw_op_args* a, const char* text, uint64_t bytes) {
  char* copy = string_memory(a, bytes + 1);
  if (!copy) return 0;
  for (uint64_t i = 0; i < bytes; ++i) copy[i] = text[i];
  copy[bytes] = 0;
  return copy;
}

/* The next character; *text moves behind it. A byte that begins no character counts as a character
 * above all of Unicode. */
static inline uint32_t next_character(const char** text) {
  const uint8_t* t = (const uint8_t*)*text;
  const int more = t[0] < 0x80 ? 0 : t[0] < 0xC2 ? -1 : t[0] < 0xE0 ? 1 : t[0] < 0xF0 ? 2 : 3;
  if (more == 0) return ++*text, t[0];
  uint32_t character = t[0] & (0x3Fu >> more);
  for (int i = 1; i <= more; ++i) {
    if ((t[i] & 0xC0) != 0x80) return ++*text, 0x110000u + t[0];
    character = character << 6 | (t[i] & 0x3F);
  }
  if (more < 0 || t[0] > 0xF4) return ++*text, 0x110000u + t[0];
  *text += more + 1;
  return character;
}

/* The letter in the other case, where it exists and its UTF-8 is as long */
static inline uint32_t other_case(uint32_t c, const tw_letters* spans, int32_t count) {
  for (int32_t i = 0; i < count && spans[i].first <= c; ++i)
    if (c <= spans[i].last && (c - spans[i].first) % (uint32_t)spans[i].step == 0)
      return c + (uint32_t)spans[i].distance;
  return c;
}
static inline uint32_t lower_case(uint32_t c) {
  return other_case(c, tw_lower_cases, sizeof tw_lower_cases / sizeof *tw_lower_cases);
}
static inline uint32_t upper_case(uint32_t c) {
  return other_case(c, tw_upper_cases, sizeof tw_upper_cases / sizeof *tw_upper_cases);
}
#endif
