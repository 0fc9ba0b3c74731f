/* Joins out[.., indices[p], ..] with updates[p], for every point p of the indices in order. */
#include "scatter.h"

int32_t tw_op_scatter_elements(const tw_op_args* a) {
  const tw_view *data = &a->in[0], *indices = &a->in[1], *updates = &a->in[2], *out = &a->out[0];
  const int32_t axis = (int32_t)a->ints[0], rank = data->rank;
  const int64_t reduction = a->ints[1], extent = data->dims[axis], count = elements_of(indices);
  int64_t index[64], stride[64], base = 0;
  for (int32_t d = 0; d < rank; ++d)
    if (d != axis && indices->dims[d] > data->dims[d])
      return tw_op_fail(a, TW_E_SHAPE, "the indices have an extent of %, the data of %",
                        indices->dims[d], data->dims[d]);
  for (int32_t d = rank; d-- > 0;) {
    index[d] = 0;
    stride[d] = d == rank - 1 ? 1 : stride[d + 1] * data->dims[d + 1];
  }
  begin_as(out, data);
  for (int64_t p = 0; p < count; ++p) {
    int64_t at = index_at(indices, p);
    if (at < -extent || at >= extent)
      return tw_op_fail(a, TW_E_ARGUMENT, "index % of an extent of %", at, extent);
    if (at < 0) at += extent;
    combine(out->data, base + at * stride[axis], updates->data, p, data->dtype, reduction);
    for (int32_t d = rank; d-- > 0;) { /* moves on to the next point */
      const int64_t step = d == axis ? 0 : stride[d];
      base += step;
      if (++index[d] < indices->dims[d]) break;
      base -= step * index[d];
      index[d] = 0;
    }
  }
  return TW_OK;
}
