/* The slices of x along an axis where the condition holds, then their number; axis -1 takes
 * elements of the flat tensor. The output is zero behind the slices. */
#include "elements.h"

int32_t tw_op_compress(const tw_op_args* a) {
  const tw_view *x = &a->in[0], *condition = &a->in[1], *out = &a->out[0];
  const int32_t axis = (int32_t)a->ints[0], flat = axis < 0;
  const int64_t given = condition->dims[0], n = flat ? elements_of(x) : x->dims[axis],
                capacity = flat ? out->dims[0] : out->dims[axis];
  const int64_t rows = flat ? 1 : extent_of(x, 0, axis),
                bytes = (flat ? 1 : extent_of(x, axis + 1, x->rank)) * element_bytes(x->dtype);
  const uint8_t* holds = condition->data;
  int64_t found = 0;
  __builtin_memset(out->data, 0, (size_t)(rows * capacity * bytes));
  for (int64_t i = 0; i < given; ++i) {
    if (!holds[i]) continue;
    if (i >= n) return tw_op_fail(a, TW_E_ARGUMENT, "condition % holds, the axis has %", i, n);
    for (int64_t row = 0; row < rows; ++row)
      copy_bytes((uint8_t*)out->data + (row * capacity + found) * bytes,
                 (const uint8_t*)x->data + (row * n + i) * bytes, bytes);
    ++found;
  }
  *(int64_t*)a->out[1].data = found;
  return TW_OK;
}
