#include "ops.h"

int32_t tw_op_fail(const tw_op_args* a, int32_t status, const char* text, int64_t first,
                   int64_t second) {
  const int64_t numbers[2] = {first, second};
  int used = 0;
  char letter[2] = {0, 0};
  text_clear(a->error);
  if (a->what) {
    text_add(a->error, a->what);
    text_add(a->error, ": ");
  }
  for (; *text; ++text) {
    letter[0] = *text;
    if (*text == '%' && used < 2) text_add_number(a->error, numbers[used++]);
    else text_add(a->error, letter);
  }
  return status;
}
