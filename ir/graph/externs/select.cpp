// Functions whose result size depends on the data. A result lies at the beginning of the largest
// possible result, and `number`, i64[1], says how much of it is used.
// * nonzero: x -> coordinates [rank, elements of x], number.
// * compress: x, condition (bool vector) -> x's slices along an axis where the condition holds,
//   number. ints: axis; -1: the flat x.
// * unique: x -> distinct slices along an axis; of each one its first place; for each slice of x
//   its distinct slice; the counts; number; scratch. ints: axis (-1: elements of the flat x),
//   sorted (0 or 1).
// * non_max_suppression: boxes [B, S, 4], scores [B, C, S], optional most boxes of a class,
//   overlap, score -> rows [dims[0], 3], number, scratch. ints: 1 where boxes are given by their
//   centres.
#include "ir/graph/externs/common.h"

namespace tw {
namespace {

const TensorType kNumber{DType::i64, {Expr(1)}, {}};

// The extent along the axis ints[0]; axis -1 means the flat tensor.
Expected<Expr> extent_along(const op::Extern& attrs, const TensorType& x) {
  if (attrs.ints[0] == -1) return element_count(x.shape);
  TW_ASSIGN(const size_t axis, axis_entry(attrs, 0, x.shape.size()));
  return x.shape[axis];
}

TensorType with_extent(const op::Extern& attrs, TensorType x, const Expr& extent) {
  if (attrs.ints[0] == -1) x.shape = {extent};
  else x.shape[static_cast<size_t>(attrs.ints[0])] = extent;
  return x;
}

Error check_scalar(const Types& in, size_t index, const char* role, DType t) {
  if (!present(in, index)) return Error::success();
  TW_TRY(check_dtype(index, role, *in[index], t));
  return check_dim(index, role, "elements", element_count(in[index]->shape), 1);
}

}  // namespace

Expected<std::vector<TensorType>> infer_nonzero(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 0, 0, 0));
  const Shape& x = in[0]->shape;
  return std::vector<TensorType>{
      {DType::i64, {Expr(static_cast<int64_t>(x.size())), element_count(x)}, {}}, kNumber};
}

Expected<std::vector<TensorType>> infer_compress(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 2, 2));
  TW_TRY(check_counts(attrs, 1, 0, 0));
  TW_TRY(check_dtype(1, "condition", *in[1], DType::boolean));
  TW_TRY(check_rank(1, "condition", *in[1], 1));
  TW_ASSIGN(const Expr extent, extent_along(attrs, *in[0]));
  return std::vector<TensorType>{
      with_extent(attrs, *in[0], simplify_dim(min(extent, in[1]->shape[0]))), kNumber};
}

Expected<std::vector<TensorType>> infer_unique(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 2, 0, 0));
  TW_TRY(check_choice(attrs, 1, 2, "sorted"));
  TW_ASSIGN(const Expr extent, extent_along(attrs, *in[0]));
  const TensorType places{DType::i64, {extent}, {}};
  return std::vector<TensorType>{
      with_extent(attrs, *in[0], extent), places, places, places, kNumber,
      scratch(extent * Expr(3))};
}

Expected<std::vector<TensorType>> infer_non_max_suppression(const op::Extern& attrs,
                                                            const Types& in) {
  TW_TRY(check_inputs(in, 2, 5));
  TW_TRY(check_counts(attrs, 1, 0, 1));
  TW_TRY(check_choice(attrs, 0, 2, "center_point_box"));
  const TensorType &boxes = *in[0], &scores = *in[1];
  TW_TRY(check_dtype(0, "boxes", boxes, DType::f32));
  TW_TRY(check_dtype(1, "scores", scores, DType::f32));
  TW_TRY(check_rank(0, "boxes", boxes, 3));
  TW_TRY(check_rank(1, "scores", scores, 3));
  TW_TRY(check_dim(0, "boxes", "numbers a box", boxes.shape[2], 4));
  TW_TRY(check_dim(1, "scores", "images", scores.shape[0], boxes.shape[0]));
  TW_TRY(check_dim(1, "scores", "boxes", scores.shape[2], boxes.shape[1]));
  TW_TRY(check_scalar(in, 2, "most boxes of a class", DType::i64));
  TW_TRY(check_scalar(in, 3, "overlap", DType::f32));
  TW_TRY(check_scalar(in, 4, "score", DType::f32));
  return std::vector<TensorType>{
      {DType::i64, {attrs.dims[0], Expr(3)}, {}}, kNumber, scratch(boxes.shape[1] * Expr(2))};
}

}  // namespace tw
