/* Takes tokens out of texts: the parts between separators, the matches of an expression, or the
 * characters. */
#include "regex.h"

enum { TOKENS_BETWEEN = 0, TOKENS_FOUND = 1, TOKENS_CHARACTERS = 2 }; /* ints[0] */

typedef struct tokens {
  const tw_op_args* a;
  machine regex;
  /* The number of expressions, the place of each, then their programs */
  const int32_t* programs;
  uint64_t* out; /* NULL: tokens are only counted */
  int64_t count, room;
  int no_memory;
} tokens;

static int64_t characters(const char* begin, const char* end) {
  int64_t count = 0;
  for (; begin < end; ++count) next_character(&begin);
  return count;
}

static void add_token(tokens* t, const char* begin, const char* end) {
  if (characters(begin, end) < t->a->ints[1]) return;
  if (t->out && t->count < t->room) {
    const char* token = new_string(t->a, begin, (uint64_t)(end - begin));
    set_string(&t->out[t->count], token);
    t->no_memory |= !token;
  }
  ++t->count;
}

/* The longest match at the first place, not before `from`, that has one. begin is NULL: there is
 * none. */
typedef struct found {
  const char *begin, *end;
} found;

static found find(tokens* t, int32_t expression, const char* begin, const char* from,
                  const char* end) {
  t->regex.words = t->programs + t->programs[1 + expression];
  for (const char* at = from;; next_character(&at)) {
    const found f = {at, longest_match(&t->regex, begin, at, end)};
    if (f.end) return f;
    if (at >= end) return (found){0, 0};
  }
}

/* The place behind a match; behind an empty match, one character on. NULL: the text ends. */
static const char* behind(found f, const char* end) {
  if (f.end > f.begin) return f.end;
  if (f.begin >= end) return 0;
  next_character(&f.begin);
  return f.begin;
}

/* Adds the parts between separators. Each separator splits the parts that the ones before it have
 * left. */
static void tokens_between(tokens* t, int32_t separator, const char* begin, const char* end) {
  if (characters(begin, end) < t->a->ints[1]) return;
  if (separator == t->programs[0]) return add_token(t, begin, end);
  for (const char* from = begin; from;) {
    const found f = find(t, separator, begin, from, end);
    tokens_between(t, separator + 1, from, f.begin ? f.begin : end);
    if (!f.begin) return;
    from = behind(f, end);
  }
}

static void take_tokens(tokens* t, const char* text) {
  const char *end = text + string_length(text), *from = text;
  t->count = 0;
  if (t->a->ints[0] == TOKENS_BETWEEN) return tokens_between(t, 0, text, end);
  while (from && from < end) {
    const char* begin = from;
    if (t->a->ints[0] == TOKENS_CHARACTERS) {
      next_character(&from);
      add_token(t, begin, from);
      continue;
    }
    const found f = find(t, 0, text, from, end);
    if (!f.begin) return;
    add_token(t, f.begin, f.end);
    from = behind(f, end);
  }
}

static int begin_tokens(const tw_op_args* a, tokens* t) {
  int32_t most = 0;
  *t = (tokens){.a = a, .programs = a->in[1].data};
  for (int32_t i = 0; i < t->programs[0]; ++i) {
    const int32_t count = t->programs[t->programs[1 + i]];
    if (count > most) most = count;
  }
  return new_machine(a, &t->regex, most);
}

/* in: texts, programs. out: the extent of string_tokens' last axis; 0 where no text has a token.
 * ints: mode, characters of the shortest token, 1 where marks surround a text's tokens. */
int32_t tw_op_string_token_count(const tw_op_args* a) {
  tokens t;
  if (!begin_tokens(a, &t)) return no_string_memory(a);
  int64_t most = 0;
  for (int64_t i = 0, count = elements_of(&a->in[0]); i < count; ++i) {
    take_tokens(&t, string_at(&a->in[0], i));
    if (t.count > most) most = t.count;
  }
  *(int64_t*)a->out[0].data = most > 0 && a->ints[2] ? most + 2 : most;
  return TW_OK;
}

/* Writes the tokens of each text, between marks if asked for, and the padding behind them. */
int32_t tw_op_string_tokens(const tw_op_args* a) {
  const tw_view* y = &a->out[0];
  const int64_t room = y->dims[y->rank - 1], mark = a->ints[2] ? 1 : 0;
  uint64_t* out = y->data;
  tokens t;
  if (!begin_tokens(a, &t)) return no_string_memory(a);
  t.room = room - 2 * mark;
  for (int64_t i = 0, count = elements_of(&a->in[0]); i < count && room > 0; ++i, out += room) {
    int64_t at = 0;
    if (mark) set_string(&out[at++], "\x02");
    t.out = out + at;
    take_tokens(&t, string_at(&a->in[0], i));
    if (t.no_memory) return no_string_memory(a);
    at += t.count < t.room ? t.count : t.room;
    if (mark) set_string(&out[at++], "\x03");
    while (at < room) set_string(&out[at++], string_at(&a->in[2], 0));
  }
  return TW_OK;
}
