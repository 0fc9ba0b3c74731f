/* Decimal numbers for error texts. */
#include "text.h"

static uint64_t divide_by_10(uint64_t v, uint32_t* digit) {   /* no 64-bit division: ARMv7 has no instruction for it */
  uint64_t q = 0, r = 0;
  for (int bit = 63; bit >= 0; --bit) {
    r = r << 1 | (v >> bit & 1);
    if (r >= 10) { r -= 10; q |= (uint64_t)1 << bit; }
  }
  *digit = (uint32_t)r;
  return q;
}

void text_add_number(tw_text* t, int64_t value) {
  char digits[24];
  int at = 23;
  digits[at] = 0;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    uint32_t digit;
    rest = divide_by_10(rest, &digit);
    digits[--at] = (char)('0' + digit);
  } while (rest);
  if (value < 0) digits[--at] = '-';
  text_add(t, digits + at);
}
