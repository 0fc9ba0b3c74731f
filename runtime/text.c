/* Writes decimal numbers into texts. */
#include "text.h"

void text_add_number(tw_text* t, int64_t value) {
  char digits[24];
  int at = 23;
  digits[at] = 0;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) digits[--at] = '-';
  text_add(t, digits + at);
}
