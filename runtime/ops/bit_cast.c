/* Copies the bytes to a tensor of another type. */
#include "elements.h"

int32_t tw_op_bit_cast(const tw_op_args* a) {
  copy_bytes(a->out[0].data, a->in[0].data, elements_of(&a->in[0]) * element_bytes(a->in[0].dtype));
  return TW_OK;
}
