/* Joins out[indices[p, 0], .., indices[p, q - 1], ...] with updates[p, ...], for every p in
 * order. */
#include "scatter.h"

int32_t tw_op_scatter_nd(const tw_op_args* a) {
  const tw_view *data = &a->in[0], *indices = &a->in[1], *updates = &a->in[2], *out = &a->out[0];
  const int32_t depth = (int32_t)indices->dims[indices->rank - 1];
  const int64_t reduction = a->ints[0], points = extent_of(indices, 0, indices->rank - 1),
                run = extent_of(data, depth, data->rank);
  const int64_t bytes = run * element_bytes(data->dtype);
  begin_as(out, data);
  for (int64_t p = 0; p < points; ++p) {
    int64_t at = 0;
    for (int32_t d = 0; d < depth; ++d) {
      const int64_t index = index_at(indices, p * depth + d), extent = data->dims[d];
      if (index < -extent || index >= extent)
        return tw_op_fail(a, TW_E_ARGUMENT, "index % of an extent of %", index, extent);
      at = at * extent + (index < 0 ? index + extent : index);
    }
    if (reduction == SCATTER_NONE)
      copy_bytes((uint8_t*)out->data + at * bytes, (const uint8_t*)updates->data + p * bytes,
                 bytes);
    else
      for (int64_t i = 0; i < run; ++i)
        combine(out->data, at * run + i, updates->data, p * run + i, data->dtype, reduction);
  }
  return TW_OK;
}
