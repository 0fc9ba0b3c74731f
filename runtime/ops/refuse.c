/* Ends the run, with a message, where the library cannot compute in the sizes that it was compiled
 * for. */
#include "ops.h"

int32_t tw_op_refuse(const tw_op_args* a) {
  char letter[2] = {0, 0};
  text_clear(a->error);
  for (int32_t i = 0; i < a->int_count; ++i) {
    letter[0] = (char)a->ints[i];
    text_add(a->error, letter);
  }
  return TW_E_SHAPE;
}
