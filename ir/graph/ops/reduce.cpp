// Reductions and arg-reductions. They fold elements in row-major order with the operators of
// ir/expr.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/graph/ops/common.h"
#include "ir/scalar_ops.h"

namespace tw {
namespace {

Shape reduced_shape(const Shape& x, const Ints& axes, bool keep) {
  Shape out;
  for (size_t i = 0; i < x.size(); ++i) {
    bool reduced = std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (!reduced) out.push_back(x[i]);
    else if (keep) out.push_back(1);
  }
  return out;
}

// Output strides by input axis; 0 along reduced axes
std::vector<int64_t> output_strides(const Tensor& x, const Ints& axes) {
  std::vector<int64_t> kept = x.shape;
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<int64_t> strides = row_major_strides(kept);
  for (int64_t axis : axes) strides[static_cast<size_t>(axis)] = 0;
  return strides;
}

double float_start(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::mean: return 0;
    case ReduceKind::max: return -std::numeric_limits<double>::infinity();
    case ReduceKind::min: return std::numeric_limits<double>::infinity();
    case ReduceKind::prod: return 1;
  }
  TW_UNREACHABLE("bad reduction");
}
int64_t int_start(ReduceKind kind, DType type) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::mean: return 0;
    case ReduceKind::max:
      return type == DType::boolean
                 ? 0
                 : cast_int(type, DType::i64, std::numeric_limits<int64_t>::min(), true);
    case ReduceKind::min: return type == DType::boolean ? 1 : cast_int(type, DType::u64, -1, true);
    case ReduceKind::prod: return 1;
  }
  TW_UNREACHABLE("bad reduction");
}
BinaryOp fold_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::mean: return BinaryOp::add;
    case ReduceKind::max: return BinaryOp::max;
    case ReduceKind::min: return BinaryOp::min;
    case ReduceKind::prod: return BinaryOp::mul;
  }
  TW_UNREACHABLE("bad reduction");
}

}  // namespace

Expected<TensorType> infer_reduce(const OpAttrs& attrs, const Types& in) {
  const op::Reduce& reduce = std::get<op::Reduce>(attrs);
  const TensorType& x = *in[0];
  bool order_only = reduce.kind == ReduceKind::max || reduce.kind == ReduceKind::min;
  if (x.dtype == DType::boolean && !order_only)
    return input_error(0, "x", "bool, expected a number type");
  for (size_t i = 0; i < reduce.axes.size(); ++i) {
    if (reduce.axes[i] < 0 || reduce.axes[i] >= static_cast<int64_t>(x.shape.size()))
      return make_error(DiagCode::invalid_model, "axis {0} of a tensor of rank {1}", reduce.axes[i],
                        x.shape.size());
    if (i && reduce.axes[i] <= reduce.axes[i - 1])
      return make_error(DiagCode::invalid_model, "the axes are not ascending");
  }
  return TensorType{x.dtype, reduced_shape(x.shape, reduce.axes, reduce.keep), {}};
}

Expected<Tensor> evaluate_reduce(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Reduce& reduce = std::get<op::Reduce>(attrs);
  const Tensor& x = *in[0];
  std::vector<int64_t> shape = extents(out.shape);
  size_t count = static_cast<size_t>(element_count(shape));
  int64_t folded = 1;
  for (int64_t axis : reduce.axes) folded *= x.shape[static_cast<size_t>(axis)];
  std::array<std::vector<int64_t>, 1> strides = {output_strides(x, reduce.axes)};
  bool mean = reduce.kind == ReduceKind::mean;
  const BinaryOp fold = fold_of(reduce.kind);
  if (is_float(x.dtype)) {
    std::vector<double> results(count, float_start(reduce.kind));
    walk<1>(x.shape, strides, [&](int64_t i, const std::array<int64_t, 1>& to) {
      double& r = results[static_cast<size_t>(to[0])];
      r = float_binary(fold, r, x.at(i));
    });
    if (mean)
      for (double& r : results) r /= static_cast<double>(folded);
    return tensor_of(out.dtype, shape, results);
  }
  std::vector<int64_t> results(count, int_start(reduce.kind, x.dtype));
  DType in_type = x.dtype == DType::u64 ? DType::u64 : DType::i64;
  walk<1>(x.shape, strides, [&](int64_t i, const std::array<int64_t, 1>& to) {
    int64_t& r = results[static_cast<size_t>(to[0])];
    r = int_binary(fold, in_type, r, x.int_at(i));
  });
  if (mean)
    for (int64_t& r : results) r = folded ? int_binary(BinaryOp::div, in_type, r, folded) : 0;
  return tensor_of(out.dtype, shape, results);
}

Expected<TensorType> infer_arg_reduce(const OpAttrs& attrs, const Types& in) {
  const op::ArgReduce& reduce = std::get<op::ArgReduce>(attrs);
  if (in[0]->dtype == DType::boolean) return input_error(0, "x", "bool, expected a number type");
  TW_ASSIGN(size_t axis, checked_axis(reduce.axis, in[0]->shape.size()));
  if (is_const(in[0]->shape[axis], 0))
    return input_error(0, "x", "axis {0} of {1} is empty", axis, to_string(*in[0]));
  return TensorType{
      DType::i64, reduced_shape(in[0]->shape, {static_cast<int64_t>(axis)}, reduce.keep), {}};
}

Expected<Tensor> evaluate_arg_reduce(const OpAttrs& attrs, const TensorType& out,
                                     const Tensors& in) {
  const op::ArgReduce& reduce = std::get<op::ArgReduce>(attrs);
  const Tensor& x = *in[0];
  TW_ASSIGN(size_t axis, checked_axis(reduce.axis, x.shape.size()));
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  int64_t extent = x.shape[axis],
          inner = element_count(std::span<const int64_t>(x.shape).subspan(axis + 1));
  // true: element a wins over element b; a NaN wins over numbers
  auto before = [&](int64_t a, int64_t b) {
    if (is_float(x.dtype))
      return std::isnan(x.at(a)) ? !std::isnan(x.at(b))
             : reduce.smallest   ? x.at(a) < x.at(b)
                                 : x.at(a) > x.at(b);
    return int_binary(BinaryOp::lt, x.dtype, x.int_at(reduce.smallest ? a : b),
                      x.int_at(reduce.smallest ? b : a)) != 0;
  };
  for (int64_t o = 0; o < y.size(); ++o) {
    int64_t base = o / inner * extent * inner + o % inner, best = 0;
    for (int64_t i = 1; i < extent; ++i) {
      bool better = reduce.last ? !before(base + best * inner, base + i * inner)
                                : before(base + i * inner, base + best * inner);
      if (better) best = i;
    }
    y.set_int(o, best);
  }
  return y;
}

}  // namespace tw
