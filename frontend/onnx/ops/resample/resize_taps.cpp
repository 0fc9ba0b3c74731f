// Resize by tensors of taps. With everything known while importing they fold to constants.
#include "frontend/onnx/ops/resample/points.h"
#include "frontend/onnx/ops/resample/resize.h"

namespace tw::onnx_import {
namespace {

constexpr DType kType = DType::f32;  // of coordinates and weights, as in resize_taps

class AxisTaps {
 public:
  AxisTaps(NodeImport& n, const ResizePlan& plan, const ResizeAxis& axis, const Expr& in)
      : n_(n),
        plan_(plan),
        axis_(axis),
        in_(n.cast(integer(n, in), kType)),
        scale_(n.cast(axis.scale, kType)) {}

  // The source coordinates [out] and, when cropping, whether they lie outside (bool).
  Val coordinates() {
    const Val at = steps(axis_.out, 0, 1), width = n_.mul(scale_, in_), half = number(0.5);
    const Val half_pixel = sub(div(add(at, half), scale_), half), one = number(1);
    const Val out = n_.cast(integer(n_, axis_.out), kType),
              single = n_.binary(BinaryOp::eq, out, one), last = sub(in_, one);
    if (plan_.crop) {
      const Val begin = n_.cast(axis_.begin, kType), span = sub(n_.cast(axis_.end, kType), begin);
      const Val inner = n_.select(single, n_.mul(n_.mul(span, last), half),
                                  div(n_.mul(n_.mul(at, span), last), sub(width, one)));
      const Val x = add(inner, n_.mul(begin, last));
      outside_ = n_.binary(BinaryOp::logical_or, n_.less(x, number(0)), n_.less(last, x));
      return x;
    }
    switch (plan_.coordinates) {
      case CoordinateMode::half_pixel: return half_pixel;
      case CoordinateMode::asymmetric: return div(at, scale_);
      case CoordinateMode::tf_half_pixel_for_nn: return div(add(at, half), scale_);
      case CoordinateMode::align_corners:
        return n_.select(single, number(0), div(n_.mul(at, last), sub(width, one)));
      case CoordinateMode::pytorch_half_pixel: return n_.select(single, number(0), half_pixel);
      case CoordinateMode::half_pixel_symmetric: {
        const Val adjustment = div(out, width);
        return add(n_.mul(n_.mul(in_, half), sub(one, adjustment)), half_pixel);
      }
    }
    TW_UNREACHABLE("bad coordinate mode");
  }

  Val nearest(Val x) {
    Val at = x;
    if (plan_.ceil_below_one) {
      const Val floor = n_.unary(UnaryOp::floor, x);
      return n_.cast(n_.select(n_.less(scale_, number(1)), n_.unary(UnaryOp::ceil, x), floor),
                     DType::i64);
    }
    switch (plan_.nearest) {
      case NearestMode::round_prefer_floor:
        at = n_.unary(UnaryOp::ceil, sub(x, number(0.5)));
        break;
      case NearestMode::round_prefer_ceil:
        at = n_.unary(UnaryOp::floor, add(x, number(0.5)));
        break;
      case NearestMode::floor: at = n_.unary(UnaryOp::floor, x); break;
      case NearestMode::ceil: at = n_.unary(UnaryOp::ceil, x); break;
    }
    return n_.cast(at, DType::i64);
  }

  // Positions [taps, out] (i64) and weights, which add up to 1.
  std::pair<Val, Val> taps(Val x) {
    const double reach = plan_.mode == ResizeMode::cubic ? 2 : 1;
    const Val shrink = plan_.antialias ? n_.min(scale_, number(1)) : number(1);
    const Val first = add(n_.unary(UnaryOp::floor, div(number(-reach), shrink)), number(1));
    const Val count = n_.cast(sub(number(2), n_.mul(number(2), first)), DType::i64);
    const std::vector<Expr> taps = n_.dims(n_.reshape(count, {1}), "the number of taps");
    if (n_.failed() || taps.size() != 1) return {};
    const Val at = add(add(n_.unary(UnaryOp::floor, x), first), steps(taps[0], 0, 2));
    Val weight = kernel(n_.unary(UnaryOp::abs, n_.mul(sub(at, x), shrink)));
    if (plan_.exclude_outside) {
      const Val beyond = n_.binary(BinaryOp::logical_or, n_.less(at, number(0)),
                                   n_.binary(BinaryOp::le, in_, at));
      weight = n_.select(beyond, number(0), weight);
    }
    if (plan_.exclude_outside || plan_.antialias) {
      const Val sum = n_.reduce(ReduceKind::sum, weight, {0}, true);
      weight = div(weight, n_.select(n_.binary(BinaryOp::eq, sum, number(0)), number(1), sum));
    }
    return {n_.cast(at, DType::i64), weight};
  }

  Val outside() const { return outside_; }

 private:
  Val number(double value) { return n_.scalar(value, kType); }
  Val add(Val a, Val b) { return n_.add(a, b); }
  Val sub(Val a, Val b) { return n_.sub(a, b); }
  Val div(Val a, Val b) { return n_.div(a, b); }

  // 0, 1 ... along an axis; a constant where short.
  Val steps(const Expr& count, int64_t axis, int64_t rank) {
    const auto known = as_const(count);
    if (!known || *known > kFoldElements) return n_.cast(positions(n_, count, rank, axis), kType);
    std::vector<double> values;
    for (int64_t i = 0; i < *known; ++i) values.push_back(static_cast<double>(i));
    std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
    shape[static_cast<size_t>(axis)] = *known;
    return table(n_, values, std::move(shape), kType);
  }

  // The weight at a distance: a triangle, or Keys' cubic.
  Val kernel(Val d) {
    if (plan_.mode == ResizeMode::linear) return n_.max(number(0), sub(number(1), d));
    const double a = plan_.cubic_a;
    const auto times = [&](Val x, Val y) { return n_.mul(x, y); };
    const Val near = add(times(times(sub(times(number(a + 2), d), number(a + 3)), d), d),
                         number(1));
    const Val far = sub(
        times(add(times(sub(times(number(a), d), number(5 * a)), d), number(8 * a)), d),
        number(4 * a));
    return n_.select(n_.binary(BinaryOp::le, d, number(1)), near,
                     n_.select(n_.less(d, number(2)), far, number(0)));
  }

  NodeImport& n_;
  const ResizePlan& plan_;
  const ResizeAxis& axis_;
  Val in_, scale_, outside_;
};

Val resize_axis(NodeImport& n, Val x, const ResizePlan& plan, const ResizeAxis& axis,
                Val& outside) {
  AxisTaps taps(n, plan, axis, n.dim(x, axis.axis));
  const Val at = taps.coordinates();
  if (n.failed()) return {};
  const int64_t rank = n.rank(x), rest = rank - 1 - axis.axis;
  if (taps.outside().valid()) {
    const Val here = n.reshape(taps.outside(), only_axis(rank, axis.axis, axis.out));
    outside = outside.valid() ? n.binary(BinaryOp::logical_or, outside, here) : here;
  }
  Ints places = all_axes(rank);
  Shape shape = n.shape(x);
  shape[static_cast<size_t>(axis.axis)] = axis.out;
  if (plan.mode == ResizeMode::nearest) {
    places[static_cast<size_t>(axis.axis)] = -1;
    return take(n, x, std::move(places), {with_trailing(n, taps.nearest(at), rest)},
                std::move(shape));
  }
  const auto [position, weight] = taps.taps(at);
  if (n.failed()) return {};
  places[static_cast<size_t>(axis.axis)] = -1;
  for (int64_t i = axis.axis + 1; i < rank; ++i) ++places[static_cast<size_t>(i)];
  shape.insert(shape.begin() + axis.axis, n.dim(position, 0));
  const Val read = take(n, x, std::move(places), {with_trailing(n, position, rest)},
                        std::move(shape));
  return n.reduce(ReduceKind::sum, n.mul(read, with_trailing(n, n.cast(weight, n.dtype(x)), rest)),
                  {axis.axis}, false);
}

}  // namespace

Val resize_by_taps(NodeImport& n, Val x, const ResizePlan& plan) {
  Val y = x, outside;
  for (const ResizeAxis& axis : plan.axes) {
    if (n.failed()) return {};
    y = resize_axis(n, y, plan, axis, outside);
  }
  return outside.valid() ? n.select(outside, n.scalar(plan.extrapolation, y), y) : y;
}

}  // namespace tw::onnx_import
