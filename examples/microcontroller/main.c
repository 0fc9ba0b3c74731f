/* Classifies an image of a digit on a microcontroller: static memory, no C library. */
#include "digits.h"

void print(const char* text);

static const float image[TW_DIGITS_INPUT_IMAGE_ELEMENTS] = {
#include "image.h"
};
static float logits[TW_DIGITS_OUTPUT_LOGITS_ELEMENTS];
static _Alignas(TW_DIGITS_ALIGNMENT) uint8_t arena[TW_DIGITS_ARENA_BYTES];

int main(void) {
  const tw_digits_io io = {image, logits};
  int best = 0;
  char text[] = "digit ?\n";
  if (tw_digits_run(&io, arena, sizeof arena) != TW_OK) return 1;
  for (int i = 1; i < TW_DIGITS_OUTPUT_LOGITS_ELEMENTS; ++i)
    if (logits[i] > logits[best]) best = i;
  text[6] = (char)('0' + best);
  print(text);
  return 0;
}
