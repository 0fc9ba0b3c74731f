// Reads at computed places (take), checks of values (within), index tensors (iota), and running
// sums and products (cumulate).
#include <algorithm>

#include "ir/graph/ops/common.h"
#include "ir/scalar_ops.h"

namespace tw {
namespace {

Error check_points(const Shape& shape) {
  for (const Expr& e : shape) {
    TW_TRY(check_dim_expr(e));
    const int64_t extent = as_const(e).value_or(0);
    if (extent < 0 || extent > int64_t{1} << 40)
      return make_error(DiagCode::invalid_model, "shape has an entry of {0}, expected 0 to 2^40",
                        extent);
  }
  return Error::success();
}

// Requires that an axis read at the point's own index is as long as the points' axis.
Error check_place(const TensorType& x, const op::Take& take, size_t axis) {
  const int64_t place = take.places[axis];
  if (place < -1 || place >= static_cast<int64_t>(take.shape.size()))
    return make_error(DiagCode::invalid_model, "places has an entry of {0}, expected -1 to {1}",
                      place, static_cast<int64_t>(take.shape.size()) - 1);
  if (place < 0) return Error::success();
  const Expr& wanted = take.shape[static_cast<size_t>(place)];
  const auto extent = as_const(x.shape[axis]), reach = as_const(wanted);
  if (extent && reach && *extent < *reach)
    return input_error(0, "x", "axis {0} of {1}, expected at least {2}", axis, to_string(x),
                       *reach);
  return Error::success();
}

}  // namespace

Expected<TensorType> infer_take(const OpAttrs& attrs, const Types& in) {
  const auto& take = std::get<op::Take>(attrs);
  const TensorType& x = *in[0];
  if (take.places.size() != x.shape.size())
    return make_error(DiagCode::invalid_model, "places has {0} entries, expected {1}",
                      take.places.size(), x.shape.size());
  TW_TRY(check_points(take.shape));
  const auto tables = static_cast<size_t>(std::ranges::count(take.places, -1));
  if (in.size() != 1 + tables)
    return make_error(DiagCode::invalid_model, "{0} index tensors, expected {1}", in.size() - 1,
                      tables);
  // True: the result is empty, or may be for some sizes.
  const bool none = std::ranges::any_of(take.shape,
                                        [](const Expr& e) { return as_const(e).value_or(0) == 0; });
  for (size_t i = 0; i < take.places.size(); ++i) {
    TW_TRY(check_place(x, take, i));
    if (is_const(x.shape[i], 0) && !none)
      return input_error(0, "x", "axis {0} of {1} is empty", i, to_string(x));
  }
  for (size_t i = 1; i < in.size(); ++i) {
    if (!in[i]) return make_error(DiagCode::invalid_model, "input {0} is absent", i);
    if (in[i]->dtype != DType::i32 && in[i]->dtype != DType::i64)
      return input_error(i, "indices", "{0}, expected i32 or i64", dtype_name(in[i]->dtype));
    TW_TRY(check_broadcast(i, "indices", *in[i], take.shape));
  }
  TensorType out{x.dtype, {}, {}};
  for (const Expr& e : take.shape) out.shape.push_back(simplify_dim(e));
  return out;
}

Expected<Tensor> evaluate_take(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const auto& take = std::get<op::Take>(attrs);
  const Tensor& x = *in[0];
  const std::vector<int64_t> shape = extents(out.shape), strides = row_major_strides(x.shape),
                             points = row_major_strides(shape);
  Tensor from = Tensor::zeros(DType::i64, shape);
  for (size_t axis = 0, table = 1; axis < take.places.size(); ++axis) {
    const int64_t place = take.places[axis], extent = x.shape[axis];
    const Tensor* indices = place < 0 ? in[table++] : nullptr;
    const std::vector<int64_t> none(shape.size(), 0);
    Error error = Error::success();
    walk<1>(shape, {indices ? broadcast_strides(indices->shape, shape) : none},
            [&](int64_t flat, const std::array<int64_t, 1>& at) {
              int64_t index = indices ? indices->int_at(at[0])
                                      : flat / points[static_cast<size_t>(place)] %
                                            shape[static_cast<size_t>(place)];
              const bool outside = index < (take.wrap ? -extent : 0) || index >= extent;
              if (outside && (take.wrap || !indices || extent == 0) && !error)
                error = make_error(DiagCode::invalid_argument, "index {0}, expected {1} to {2}",
                                   index, -extent, extent - 1);
              if (take.wrap && index < 0) index += extent;
              from.set_int(flat,
                           from.int_at(flat) +
                               std::clamp<int64_t>(index, 0, std::max<int64_t>(extent - 1, 0)) *
                                   strides[axis]);
            });
    if (error) return error;
  }
  Tensor y = Tensor::zeros(out.dtype, shape);
  const auto bytes = static_cast<size_t>(dtype_bytes(out.dtype));
  for (int64_t i = 0; i < y.size(); ++i)
    std::copy_n(
        x.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(from.int_at(i)) * bytes),
        bytes, y.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * bytes));
  return y;
}

Expected<TensorType> infer_within(const OpAttrs& attrs, const Types& in) {
  const auto& within = std::get<op::Within>(attrs);
  const DType dtype = in[0]->dtype;
  if (dtype != DType::boolean && dtype != DType::i32 && dtype != DType::i64)
    return input_error(0, "x", "{0}, expected i32, i64 or bool", dtype_name(dtype));
  const size_t ends = dtype == DType::boolean ? 0 : 2;
  if (within.range.size() != ends)
    return make_error(DiagCode::invalid_model, "range has {0} entries, expected {1}",
                      within.range.size(), ends);
  for (const Expr& end : within.range) TW_TRY(check_dim_expr(end));
  return *in[0];
}

Expected<Tensor> evaluate_within(const OpAttrs& attrs, const TensorType&, const Tensors& in) {
  const auto& within = std::get<op::Within>(attrs);
  const Ints range = extents(within.range);
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    const int64_t value = in[0]->int_at(i);
    if (range.empty() && value == 0)
      return make_error(DiagCode::invalid_argument, "{0}", within.what);
    if (!range.empty() && (value < range[0] || value > range[1]))
      return make_error(DiagCode::invalid_argument, "{0} {1}, expected {2} to {3}", within.what,
                        value, range[0], range[1]);
  }
  return *in[0];
}

Expected<TensorType> infer_iota(const OpAttrs& attrs, const Types&) {
  const auto& iota = std::get<op::Iota>(attrs);
  TW_TRY(check_points(iota.shape));
  TW_ASSIGN(size_t axis, checked_axis(iota.axis, iota.shape.size()));
  (void)axis;
  TensorType out{DType::i64, {}, {}};
  for (const Expr& e : iota.shape) out.shape.push_back(simplify_dim(e));
  return out;
}

Expected<Tensor> evaluate_iota(const OpAttrs& attrs, const TensorType& out, const Tensors&) {
  Tensor y = Tensor::zeros(DType::i64, extents(out.shape));
  TW_ASSIGN(size_t axis, checked_axis(std::get<op::Iota>(attrs).axis, y.shape.size()));
  const int64_t stride = row_major_strides(y.shape)[axis];
  for (int64_t i = 0; i < y.size(); ++i) y.set_int(i, i / stride % y.shape[axis]);
  return y;
}

Expected<TensorType> infer_cumulate(const OpAttrs& attrs, const Types& in) {
  const auto& a = std::get<op::Cumulate>(attrs);
  TW_ASSIGN(size_t axis, checked_axis(a.axis, in[0]->shape.size()));
  (void)axis;
  if (a.kind != ReduceKind::sum && a.kind != ReduceKind::prod)
    return make_error(DiagCode::invalid_model, "kind is neither sum nor prod");
  if (in[0]->dtype == DType::boolean) return input_error(0, "x", "bool cannot be added up");
  return *in[0];
}

Expected<Tensor> evaluate_cumulate(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const auto& a = std::get<op::Cumulate>(attrs);
  const Tensor& x = *in[0];
  Tensor y = Tensor::zeros(out.dtype, x.shape);
  TW_ASSIGN(size_t axis, checked_axis(a.axis, x.shape.size()));
  const int64_t stride = row_major_strides(x.shape)[axis], extent = x.shape[axis];
  const BinaryOp step = a.kind == ReduceKind::sum ? BinaryOp::add : BinaryOp::mul;
  const int64_t first = a.kind == ReduceKind::sum ? 0 : 1;
  for (int64_t row = 0; row < x.size() / std::max<int64_t>(extent, 1); ++row) {
    double real = static_cast<double>(first);
    int64_t whole = first;
    for (int64_t k = 0; k < extent; ++k) {
      const int64_t at = row / stride * stride * extent + row % stride +
                         (a.reverse ? extent - 1 - k : k) * stride;
      const auto store = [&] { is_float(x.dtype) ? y.set(at, real) : y.set_int(at, whole); };
      if (a.exclusive) store();
      if (is_float(x.dtype)) real = step == BinaryOp::add ? real + x.at(at) : real * x.at(at);
      else whole = int_binary(step, DType::i64, whole, x.int_at(at));
      if (!a.exclusive) store();
    }
  }
  return y;
}

}  // namespace tw
