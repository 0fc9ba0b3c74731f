/* Texts: changes of case, words left out, and splitting into words. */
#include "elements.h"
#include "strings.h"

enum { CASE_KEPT = 0, CASE_LOWER = 1, CASE_UPPER = 2 };

/* Writes a character as UTF-8 of `bytes` bytes. */
static char* put_character(char* to, uint32_t c, int64_t bytes) {
  static const uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (int64_t i = bytes - 1; i > 0; --i, c >>= 6) to[i] = (char)(0x80 | (c & 0x3F));
  to[0] = (char)(kLead[bytes] | c);
  return to + bytes;
}

/* Writes the text in the other case; `to` has room for as many bytes. */
static void change_case(char* to, const char* text, int64_t action) {
  while (*text) {
    const char* begin = text;
    const uint32_t c = next_character(&text);
    const uint32_t other = action == CASE_LOWER ? lower_case(c) : upper_case(c);
    if (other != c) to = put_character(to, other, text - begin);
    else
      while (begin < text) *to++ = *begin++;
  }
  *to = 0;
}

static char* in_case(const tw_op_args* a, const char* text, int64_t action) {
  char* changed = string_memory(a, string_length(text) + 1);
  if (changed) change_case(changed, text, action);
  return changed;
}

static int same_word(const char* a, const char* b, int64_t exact) {
  if (exact) return string_order(a, b) == 0;
  while (*a && *b)
    if (lower_case(next_character(&a)) != lower_case(next_character(&b))) return 0;
  return !*a && !*b;
}

/* in: words, and stop words. out: the words that stay, or an empty string where none stays; their
 * number. ints: the case to change to, and 1 where words are compared with their case. */
int32_t tw_op_string_normalize(const tw_op_args* a) {
  uint64_t* out = a->out[0].data;
  int64_t kept = 0;
  for (int64_t i = 0, count = elements_of(&a->in[0]); i < count; ++i) {
    const char* text = string_at(&a->in[0], i);
    int stops = 0;
    for (int64_t s = 0, words = elements_of(&a->in[1]); s < words && !stops; ++s)
      stops = same_word(text, string_at(&a->in[1], s), a->ints[1]);
    if (stops) continue;
    if (a->ints[0] != CASE_KEPT) text = in_case(a, text, a->ints[0]);
    if (!text) return no_string_memory(a);
    set_string(&out[kept++], text);
  }
  if (kept == 0) set_string(&out[kept++], "");
  *(int64_t*)a->out[1].data = kept;
  for (int64_t room = elements_of(&a->out[0]); kept < room; ++kept) set_string(&out[kept], "");
  return TW_OK;
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* A part of a text. The search for the next part begins at `rest`; NULL: this is the last part. */
typedef struct part {
  const char *begin, *end, *rest;
} part;

/* The next word; runs of blanks separate words. `more` is 0 where the rest of the text stays
 * whole. */
static part next_word(const char* text, int more) {
  part p = {text, text, 0};
  while (*p.end && (!more || !is_space(*p.end))) ++p.end;
  if (!more) return p;
  const char* rest = p.end;
  while (is_space(*rest)) ++rest;
  p.rest = *rest ? rest : 0;
  return p;
}

static part next_part(const char* text, const char* delimiter, int more) {
  if (!*delimiter) return next_word(text, more);
  part p = {text, text, 0};
  for (; *p.end; ++p.end) {
    uint64_t i = 0;
    while (more && delimiter[i] && p.end[i] == delimiter[i]) ++i;
    if (!more || delimiter[i]) continue;
    p.rest = p.end + i;
    break;
  }
  return p;
}

static const char* first_part(const char* text, const char* delimiter) {
  if (*delimiter) return text;
  while (is_space(*text)) ++text;
  return *text ? text : 0;
}

/* Counts the parts of text i. Where `out` is given it gets the parts, and empty strings in the rest
 * of `room`. Returns -1 without memory. */
static int64_t take_apart(const tw_op_args* a, int64_t i, uint64_t* out, int64_t room) {
  const char* delimiter = string_at(&a->in[1], 0);
  const char* text = first_part(string_at(&a->in[0], i), delimiter);
  const int64_t most = a->ints[0]; /* how often a text is split; negative: no limit */
  int64_t count = 0;
  while (text) {
    const part p = next_part(text, delimiter, most < 0 || count < most);
    if (out && count < room) {
      const char* own = new_string(a, p.begin, (uint64_t)(p.end - p.begin));
      if (!own) return -1;
      set_string(&out[count], own);
    }
    ++count;
    text = p.rest;
  }
  for (int64_t at = count; out && at < room; ++at) set_string(&out[at], "");
  return count;
}

/* in: texts, a delimiter (empty: blanks). out: the number of parts of each text, and the largest of
 * these. */
int32_t tw_op_string_parts(const tw_op_args* a) {
  int64_t *counts = a->out[0].data, *most = a->out[1].data;
  *most = 0;
  for (int64_t i = 0, count = elements_of(&a->in[0]); i < count; ++i) {
    counts[i] = take_apart(a, i, 0, 0);
    if (counts[i] > *most) *most = counts[i];
  }
  return TW_OK;
}

int32_t tw_op_string_split(const tw_op_args* a) {
  const tw_view* y = &a->out[0];
  const int64_t room = y->dims[y->rank - 1];
  uint64_t* out = y->data;
  for (int64_t i = 0, count = elements_of(&a->in[0]); i < count; ++i)
    if (take_apart(a, i, out + i * room, room) < 0) return no_string_memory(a);
  return TW_OK;
}
