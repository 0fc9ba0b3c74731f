/* The coordinates of the elements that are not zero, in row-major order, a row for each axis; then
 * their number. The output is zero behind them. */
#include "numbers.h"

int32_t tw_op_nonzero(const tw_op_args* a) {
  const tw_view* x = &a->in[0];
  const int64_t total = elements_of(x);
  int64_t *out = a->out[0].data, *count = a->out[1].data, index[64] = {0}, found = 0;
  __builtin_memset(out, 0, (size_t)(total * x->rank * 8));
  for (int64_t i = 0; i < total; ++i) {
    if (is_real(x->dtype) ? real_at(x->data, i, x->dtype) != 0
                          : integer_at(x->data, i, x->dtype) != 0) {
      for (int32_t d = 0; d < x->rank; ++d) out[d * total + found] = index[d];
      ++found;
    }
    for (int32_t d = x->rank; d-- > 0;) {
      if (++index[d] < x->dims[d]) break;
      index[d] = 0;
    }
  }
  *count = found;
  return TW_OK;
}
