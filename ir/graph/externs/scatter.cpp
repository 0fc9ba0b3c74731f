// Functions that write updates into a copy of their first input. Negative indices count from the
// end, and the last update of a place wins. runtime/ops/scatter.h lists the reductions.
// * scatter_elements: data, indices (i32, i64), updates of the indices' shape -> data with the
//   updates at their places along the axis. ints: axis, reduction.
// * scatter_nd: data, indices [points.., q], updates [points.., the data's dims after the first q]
//   -> data. ints: reduction.
// * tensor_scatter: cache, update, optional places (i64, one for each entry of axis 0) -> cache.
//   ints: axis (not 0), circular (0 or 1).
#include "ir/graph/externs/common.h"

namespace tw {
namespace {

Error check_reduction(const op::Extern& attrs, size_t index, DType t) {
  TW_TRY(check_choice(attrs, index, 5, "reduction"));
  if ((t == DType::boolean || t == DType::string) && attrs.ints[index] != 0)
    return make_error(DiagCode::unsupported, "a reduction of {0}", dtype_name(t));
  return Error::success();
}

Error check_indices(const TensorType& t) {
  if (t.dtype == DType::i64 || t.dtype == DType::i32) return Error::success();
  return input_error(1, "indices", "{0}, expected i32 or i64", dtype_name(t.dtype));
}

}  // namespace

Expected<std::vector<TensorType>> infer_scatter_elements(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 3, 3));
  TW_TRY(check_counts(attrs, 2, 0, 0));
  const TensorType &data = *in[0], &indices = *in[1], &updates = *in[2];
  TW_TRY(axis_entry(attrs, 0, data.shape.size()).takeError());
  TW_TRY(check_reduction(attrs, 1, data.dtype));
  TW_TRY(check_indices(indices));
  TW_TRY(check_rank(1, "indices", indices, data.shape.size()));
  TW_TRY(check_dtype(2, "updates", updates, data.dtype));
  TW_TRY(check_shape(2, "updates", updates, indices.shape));
  for (size_t i = 0; i < data.shape.size(); ++i) {
    const auto here = as_const(indices.shape[i]), extent = as_const(data.shape[i]);
    if (here && extent && *here > *extent && static_cast<int64_t>(i) != attrs.ints[0])
      return input_error(1, "indices", "dim {0} is {1}, the data has {2}", i, *here, *extent);
  }
  return std::vector<TensorType>{data};
}

Expected<std::vector<TensorType>> infer_scatter_nd(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 3, 3));
  TW_TRY(check_counts(attrs, 1, 0, 0));
  const TensorType &data = *in[0], &indices = *in[1], &updates = *in[2];
  TW_TRY(check_reduction(attrs, 0, data.dtype));
  TW_TRY(check_indices(indices));
  TW_TRY(check_dtype(2, "updates", updates, data.dtype));
  const auto depth = indices.shape.empty() ? std::nullopt : as_const(indices.shape.back());
  if (!depth || *depth < 0 || *depth > static_cast<int64_t>(data.shape.size()))
    return input_error(1, "indices",
                       "shape {0}, expected a last dim of at most {1}, the data's rank",
                       to_string(indices.shape), data.shape.size());
  Shape wanted(indices.shape.begin(), indices.shape.end() - 1);
  wanted.insert(wanted.end(), data.shape.begin() + *depth, data.shape.end());
  TW_TRY(check_shape(2, "updates", updates, wanted));
  return std::vector<TensorType>{data};
}

Expected<std::vector<TensorType>> infer_tensor_scatter(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 2, 3));
  TW_TRY(check_counts(attrs, 2, 0, 0));
  TW_TRY(check_choice(attrs, 1, 2, "circular"));
  const TensorType &cache = *in[0], &update = *in[1];
  TW_ASSIGN(const size_t axis, axis_entry(attrs, 0, cache.shape.size()));
  if (axis == 0) return make_error(DiagCode::invalid_model, "axis 0 is the batch");
  TW_TRY(check_dtype(1, "update", update, cache.dtype));
  TW_TRY(check_rank(1, "update", update, cache.shape.size()));
  for (size_t i = 0; i < cache.shape.size(); ++i)
    if (i != axis) TW_TRY(check_dim(1, "update", "entries", update.shape[i], cache.shape[i]));
  if (present(in, 2)) {
    TW_TRY(check_dtype(2, "places", *in[2], DType::i64));
    TW_TRY(check_rank(2, "places", *in[2], 1));
    TW_TRY(check_dim(2, "places", "entries", in[2]->shape[0], cache.shape[0]));
  }
  return std::vector<TensorType>{cache};
}

}  // namespace tw
