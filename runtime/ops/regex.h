/* Matches regular expressions that were compiled with the model
 * (frontend/onnx/ops/strings/regex.h). It follows all states at once, so that its time is at most
 * proportional to the length of the text times that of the expression. */
#ifndef TW_REGEX_H
#define TW_REGEX_H
#include "elements.h"
#include "strings.h"

/* A program in words: the number of its instructions; the instructions, each as (operation, a, b);
 * then the sets of characters, each as the number of ranges and the first and last character of
 * each range. */
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
  int32_t *now, *next, *stack, *mark; /* lists of instructions; mark: last step that reached one */
  int32_t step;
  int at_begin, at_end, at_word; /* facts about the place between two characters */
} machine;

static int in_set(const int32_t* set, uint32_t c) {
  for (int32_t i = 0; i < set[0]; ++i)
    if (c >= (uint32_t)set[1 + 2 * i] && c <= (uint32_t)set[2 + 2 * i]) return 1;
  return 0;
}

static int is_word_character(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Adds an instruction and all that it reaches without a character. Returns the new length of the
 * list. */
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

/* Takes memory for programs of up to `instructions`; 0: no memory. */
static int new_machine(const tw_op_args* a, machine* m, int32_t instructions) {
  const uint64_t each = (uint64_t)instructions + 2;
  int32_t* memory = string_memory(a, each * 5 * sizeof(int32_t));
  if (!memory) return 0;
  m->now = memory, m->next = memory + each, m->mark = memory + 2 * each;
  m->stack = memory + 3 * each; /* holds two entries for each marked instruction at most */
  for (uint64_t i = 0; i < each; ++i) m->mark[i] = 0;
  m->step = 0;
  return 1;
}

static int has_ended(const machine* m, int32_t alive) {
  for (int32_t i = 0; i < alive; ++i)
    if (m->words[1 + 3 * m->now[i]] == RE_END) return 1;
  return 0;
}

/* The end of the longest match that begins at `from` in the text [begin, end); NULL: there is
 * none. */
static const char* longest_match(machine* m, const char* begin, const char* from, const char* end) {
  const char* found = 0;
  uint32_t before = from > begin ? (uint8_t)from[-1] : 0;
  int32_t alive = 0;
  for (const char* text = from;;) {
    const char* rest = text;
    const uint32_t c = text < end ? next_character(&rest) : 0;
    m->at_begin = text == begin;
    m->at_end = text == end;
    m->at_word = is_word_character(before) != is_word_character(c);
    ++m->step;
    int32_t length = 0;
    if (text == from) length = follow(m, m->next, 0, 0);
    for (int32_t i = 0; i < alive; ++i) {
      const int32_t* at = m->words + 1 + 3 * m->now[i];
      if (at[0] == RE_SET && in_set(m->words + at[1], before))
        length = follow(m, m->next, length, m->now[i] + 1);
    }
    int32_t* swap = m->now;
    m->now = m->next;
    m->next = swap;
    alive = length;
    if (has_ended(m, alive)) found = text;
    if (text == end || !alive) return found;
    before = c;
    text = rest;
  }
}
#endif
