/* Operators on strings: constants, comparison, concatenation, lookup. */
#include "strings.h"
#include "elements.h"

/* in: the bytes of all strings, each with a zero behind it, as the importer packs them. */
int32_t tw_op_string_const(const tw_op_args* a) {
  const char* text = a->in[0].data;
  uint64_t* out = a->out[0].data;
  const uint64_t bytes = (uint64_t)elements_of(&a->in[0]);
  char* copy = string_memory(a, bytes + 1);
  if (!copy) return no_string_memory(a);
  copy_bytes(copy, text, (int64_t)bytes);
  copy[bytes] = 0;
  const char* end = copy + bytes;
  for (int64_t i = 0, count = elements_of(&a->out[0]); i < count; ++i) {
    set_string(&out[i], copy); /* the empty string, once no bytes are left */
    if (copy < end) copy += string_length(copy) + 1;
    if (copy > end) copy = (char*)end;
  }
  return TW_OK;
}

int32_t tw_op_string_equal(const tw_op_args* a) {
  uint8_t* out = a->out[0].data;
  for (int64_t i = 0, count = elements_of(&a->out[0]); i < count; ++i)
    out[i] = string_order(string_at(&a->in[0], i), string_at(&a->in[1], i)) == 0;
  return TW_OK;
}

int32_t tw_op_string_concat(const tw_op_args* a) {
  uint64_t* out = a->out[0].data;
  for (int64_t i = 0, count = elements_of(&a->out[0]); i < count; ++i) {
    const char *first = string_at(&a->in[0], i), *second = string_at(&a->in[1], i);
    const uint64_t head = string_length(first), tail = string_length(second);
    char* joined = string_memory(a, head + tail + 1);
    if (!joined) return no_string_memory(a);
    copy_bytes(joined, first, (int64_t)head);
    copy_bytes(joined + head, second, (int64_t)tail + 1);
    set_string(&out[i], joined);
  }
  return TW_OK;
}

/* The place of each string among sorted keys, or -1 where it is none of them */
int32_t tw_op_string_find(const tw_op_args* a) {
  int64_t* out = a->out[0].data;
  const int64_t keys = elements_of(&a->in[1]);
  for (int64_t i = 0, count = elements_of(&a->out[0]); i < count; ++i) {
    const char* text = string_at(&a->in[0], i);
    int64_t low = 0, high = keys;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (string_order(string_at(&a->in[1], middle), text) < 0) low = middle + 1;
      else high = middle;
    }
    out[i] = low < keys && string_order(string_at(&a->in[1], low), text) == 0 ? low : -1;
  }
  return TW_OK;
}
