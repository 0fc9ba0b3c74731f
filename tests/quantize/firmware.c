/* Runs a model of many inputs and outputs once, and prints the outputs' bytes in hexadecimal
 * digits. MODEL_H and io.h are generated; INPUTS and OUTPUTS list the buffers of io.h. */
#include MODEL_H
#include "io.h"

void print(const char* text);

static _Alignas(64) uint8_t arena[ARENA_BYTES];

static void print_bytes(const uint8_t* bytes, int count) {
  char text[65];
  while (count > 0) {
    int used = 0;
    for (; used < 64 && count > 0; ++bytes, --count) {
      text[used++] = "0123456789abcdef"[*bytes >> 4];
      text[used++] = "0123456789abcdef"[*bytes & 15];
    }
    text[used] = 0;
    print(text);
  }
}

int main(void) {
  static const void* const inputs[] = {INPUTS};
  static uint8_t* const outputs[] = {OUTPUTS};
  static const int sizes[] = {OUTPUT_BYTES};
  if (COMPUTE(inputs, (void* const*)outputs, 0, arena, sizeof arena) != TW_OK) return 1;
  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) print_bytes(outputs[i], sizes[i]);
  return 0;
}
