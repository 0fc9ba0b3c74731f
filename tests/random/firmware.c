/* Runs a model once on the inputs in data.h, which random_models.py writes, and prints the bytes of
 * each output as a line. */
#include "data.h"
#include "model.h"

void print(const char* text);

static void print_bytes(const uint8_t* bytes, uint32_t count) {
  static const char digits[] = "0123456789abcdef";
  char text[65];
  print("o");
  for (uint32_t i = 0; i < count;) {
    uint32_t n = 0;
    for (; i < count && n < 64; ++i) {
      text[n++] = digits[bytes[i] >> 4];
      text[n++] = digits[bytes[i] & 15];
    }
    text[n] = 0;
    print(text);
  }
  print("\n");
}

int main(void) {
  const int32_t status = tw_model_compute(inputs, outputs, symbols, arena, sizeof arena);
  if (status != TW_OK) return status;
  for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) print_bytes(outputs[i], sizes[i]);
  return 0;
}
