/* Whether a regular expression matches all of a string: all states of the compiled expression
 * (frontend/onnx/ops/strings/regex.h) at once, so that the time is that of the text times that of
 * the expression, whatever they are. */
#include "elements.h"
#include "strings.h"

/* The words of a program: the number of its instructions, these (operation, a, b), then the sets of
 * characters: the number of ranges, and the first and last character of each. */
enum {
  RE_END = 0,
  RE_SPLIT = 1,
  RE_JUMP = 2,
  RE_SET = 3,
  RE_BEGIN = 4,
  RE_FINISH = 5,
  RE_WORD = 6,
  RE_NO_WORD = 7
};

typedef struct machine {
  const int32_t* words;
  int32_t *now, *next, *stack, *mark; /* lists of instructions; mark: by instruction, the step */
  int32_t count, step;
  int at_begin, at_end, at_word; /* what is true between the characters here */
} machine;

static int in_set(const int32_t* set, uint32_t c) {
  for (int32_t i = 0; i < set[0]; ++i)
    if (c >= (uint32_t)set[1 + 2 * i] && c <= (uint32_t)set[2 + 2 * i]) return 1;
  return 0;
}

static int is_word_character(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Adds an instruction and those that are reached from it without a character; the new length of
 * the list. */
static int32_t follow(machine* m, int32_t* list, int32_t length, int32_t from) {
  int32_t depth = 0;
  m->stack[depth++] = from;
  while (depth) {
    const int32_t at = m->stack[--depth];
    if (m->mark[at] == m->step) continue;
    m->mark[at] = m->step;
    const int32_t* i = m->words + 1 + 3 * at;
    switch (i[0]) {
      case RE_SPLIT:
        m->stack[depth++] = i[2];
        m->stack[depth++] = i[1];
        break;
      case RE_JUMP: m->stack[depth++] = i[1]; break;
      case RE_BEGIN:
        if (m->at_begin) m->stack[depth++] = at + 1;
        break;
      case RE_FINISH:
        if (m->at_end) m->stack[depth++] = at + 1;
        break;
      case RE_WORD:
        if (m->at_word) m->stack[depth++] = at + 1;
        break;
      case RE_NO_WORD:
        if (!m->at_word) m->stack[depth++] = at + 1;
        break;
      default: list[length++] = at; break;
    }
  }
  return length;
}

static int matches(machine* m, const char* text) {
  uint32_t before = 0, here = 0;
  int32_t alive = 0;
  for (int32_t i = 0; i < m->count; ++i) m->mark[i] = 0;
  m->step = 0;
  for (int first = 1;; first = 0) {
    const char* rest = text;
    const uint32_t c = *text ? next_character(&rest) : 0;
    m->at_begin = first;
    m->at_end = !*text;
    before = first ? 0 : here;
    m->at_word = is_word_character(before) != is_word_character(c);
    ++m->step;
    int32_t length = 0;
    if (first) length = follow(m, m->next, 0, 0);
    for (int32_t i = 0; i < alive; ++i) {
      const int32_t* at = m->words + 1 + 3 * m->now[i];
      if (at[0] == RE_SET && in_set(m->words + at[1], before))
        length = follow(m, m->next, length, m->now[i] + 1);
    }
    int32_t* swap = m->now;
    m->now = m->next;
    m->next = swap;
    alive = length;
    if (!*text) break;
    if (!alive) return 0;
    here = c;
    text = rest;
  }
  for (int32_t i = 0; i < alive; ++i)
    if (m->words[1 + 3 * m->now[i]] == RE_END) return 1;
  return 0;
}

int32_t tw_op_string_match(const tw_op_args* a) {
  machine m = {a->in[1].data, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  m.count = m.words[0];
  const uint64_t each = (uint64_t)m.count + 2;
  int32_t* memory = string_memory(a, each * 5 * sizeof(int32_t));
  if (!memory) return no_string_memory(a);
  m.now = memory, m.next = memory + each, m.mark = memory + 2 * each;
  m.stack = memory + 3 * each; /* two a marked instruction at most */
  uint8_t* out = a->out[0].data;
  for (int64_t i = 0, count = elements_of(&a->out[0]); i < count; ++i)
    out[i] = (uint8_t)matches(&m, string_at(&a->in[0], i));
  return TW_OK;
}
