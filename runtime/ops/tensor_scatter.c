/* Writes an update along an axis of a cache. Each entry of axis 0 has its own place to begin at;
 * with circular, the update goes on at the beginning when it reaches the end. */
#include "scatter.h"

int32_t tw_op_tensor_scatter(const tw_op_args* a) {
  const tw_view *cache = &a->in[0], *update = &a->in[1], *out = &a->out[0];
  const int64_t* begins = a->in_count > 2 ? a->in[2].data : 0;
  const int32_t axis = (int32_t)a->ints[0];
  const int64_t batch = cache->dims[0], rows = extent_of(cache, 1, axis),
                capacity = cache->dims[axis], length = update->dims[axis];
  const int64_t bytes = extent_of(cache, axis + 1, cache->rank) * element_bytes(cache->dtype);
  begin_as(out, cache);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t begin = begins ? begins[b] : 0;
    if (begin < 0 || begin > capacity || length > capacity ||
        (!a->ints[1] && begin + length > capacity))
      return tw_op_fail(a, TW_E_ARGUMENT, "an update from % on does not fit into %", begin,
                        capacity);
    for (int64_t row = b * rows; row < (b + 1) * rows; ++row)
      for (int64_t i = 0; i < length; ++i) {
        const int64_t to = begin + i < capacity ? begin + i : begin + i - capacity;
        copy_bytes((uint8_t*)out->data + (row * capacity + to) * bytes,
                   (const uint8_t*)update->data + (row * length + i) * bytes, bytes);
      }
  }
  return TW_OK;
}
