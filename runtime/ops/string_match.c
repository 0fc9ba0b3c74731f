/* Tells for each string if a regular expression matches all of it. */
#include "regex.h"

int32_t tw_op_string_match(const tw_op_args* a) {
  machine m;
  m.words = a->in[1].data;
  if (!new_machine(a, &m, m.words[0])) return no_string_memory(a);
  uint8_t* out = a->out[0].data;
  for (int64_t i = 0, count = elements_of(&a->out[0]); i < count; ++i) {
    const char* text = string_at(&a->in[0], i);
    const char* end = text + string_length(text);
    out[i] = longest_match(&m, text, text, end) == end;
  }
  return TW_OK;
}
