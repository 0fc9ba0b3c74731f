/* Runs a model once on given inputs. Prints the bits of its outputs, a word a line, then the bytes
 * of stack that the run took, and the ticks of the system timer for a second run. MODEL_H, MODEL,
 * INPUT_TYPE, OUTPUT_WORDS and ARENA_BYTES come from the command line, the inputs from input.h. */
#include MODEL_H
#define JOIN(a, b, c) a##b##c
#define NAME(a, b, c) JOIN(a, b, c)

void print(const char* text);

static const INPUT_TYPE input[] = {
#include "input.h"
};
static uint32_t output[OUTPUT_WORDS];
static _Alignas(64) uint8_t arena[ARENA_BYTES];

static void print_word(uint32_t word) {
  char text[10] = "00000000\n";
  for (int i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
  print(text);
}

enum { STACK = 16384, PAINT = 0x5a };
extern uint32_t stack_top[];

static __attribute__((noinline)) int32_t run(void) {
  const void* const inputs[] = {input};
  void* const outputs[] = {output};
  return NAME(tw_, MODEL, _compute)(inputs, outputs, 0, arena, sizeof arena);
}

/* The system timer counts 24 bits down, at the processor's clock. */
static volatile uint32_t* const timer = (volatile uint32_t*)0xE000E010;

int main(void) {
  uint32_t ticks;
  volatile uint8_t* low = (uint8_t*)stack_top - STACK;
  const volatile uint8_t* here = __builtin_frame_address(0);
  int32_t used = 0;
  for (volatile uint8_t* p = low; p < here - 256; ++p) *p = PAINT;
  if (run() != TW_OK) return 1;
  for (int i = 0; i < OUTPUT_WORDS; ++i) print_word(output[i]);
  while (used < STACK && low[used] == PAINT) ++used;
  print_word((uint32_t)(STACK - used));
  timer[1] = timer[2] = 0xffffff;
  timer[0] = 5;
  if (run() != TW_OK) return 2;
  ticks = timer[2];
  print_word(0xffffff - ticks);
  return 0;
}
