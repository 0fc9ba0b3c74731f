/* Joins scattered updates with the data. */
#ifndef TW_SCATTER_H
#define TW_SCATTER_H
#include "numbers.h"

enum { SCATTER_NONE, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN };

/* Joins data[to] with updates[from]. max and min propagate NaNs. */
static inline void combine(void* data, int64_t to, const void* updates, int64_t from, int32_t dtype,
                           int64_t reduction) {
  if (reduction == SCATTER_NONE) {
    copy_element(data, to, updates, from, element_bytes(dtype));
  } else if (is_real(dtype)) {
    const double x = real_at(data, to, dtype), y = real_at(updates, from, dtype);
    const int larger = y > x || y != y, smaller = y < x || y != y;
    set_real(data, to, dtype,
             reduction == SCATTER_ADD                        ? x + y
             : reduction == SCATTER_MUL                      ? x * y
             : (reduction == SCATTER_MAX ? larger : smaller) ? y
                                                             : x);
  } else {
    const uint64_t x = integer_at(data, to, dtype), y = integer_at(updates, from, dtype);
    const int larger = is_signed(dtype) ? (int64_t)y > (int64_t)x : y > x;
    set_integer(data, to, dtype,
                reduction == SCATTER_ADD               ? x + y
                : reduction == SCATTER_MUL             ? x * y
                : larger == (reduction == SCATTER_MAX) ? y
                                                       : x);
  }
}

/* Copies the data to the output, unless they share memory. */
static inline void begin_as(const tw_view* out, const tw_view* data) {
  if (out->data != data->data)
    copy_bytes(out->data, data->data, elements_of(data) * element_bytes(data->dtype));
}
#endif
