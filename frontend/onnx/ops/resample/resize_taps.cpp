// Resize by tensors of taps. If all is known during import, they fold to constants.
#include "frontend/onnx/ops/resample/points.h"
#include "frontend/onnx/ops/resample/resize.h"

namespace tw::onnx_import {
namespace {

constexpr DType kType = DType::f32;  // type of weights and of float coordinates

class AxisTaps {
 public:
  AxisTaps(NodeImport& n, const ResizePlan& plan, const ResizeAxis& axis, const Expr& in)
      : n_(n),
        plan_(plan),
        axis_(axis),
        extent_(integer(n, in)),
        in_(n.cast(extent_, kType)),
        scale_(n.cast(axis.scale, kType)),
        exact_(axis.above.valid() && !plan.crop) {}

  // Finds the source coordinates [out].
  void find_coordinates() {
    if (exact_) find_quotient();
    else x_ = coordinates();
  }

  Val nearest() {
    if (exact_) return nearest_of_quotient();
    Val at = x_;
    if (plan_.ceil_below_one) {
      const Val floor = n_.unary(UnaryOp::floor, x_);
      return n_.cast(n_.select(n_.less(scale_, number(1)), n_.unary(UnaryOp::ceil, x_), floor),
                     DType::i64);
    }
    switch (plan_.nearest) {
      case NearestMode::round_prefer_floor:
        at = n_.unary(UnaryOp::ceil, sub(x_, number(0.5)));
        break;
      case NearestMode::round_prefer_ceil:
        at = n_.unary(UnaryOp::floor, add(x_, number(0.5)));
        break;
      case NearestMode::floor: at = n_.unary(UnaryOp::floor, x_); break;
      case NearestMode::ceil: at = n_.unary(UnaryOp::ceil, x_); break;
    }
    return n_.cast(at, DType::i64);
  }

  // Positions [taps, out] (i64) and weights, which add up to 1.
  std::pair<Val, Val> taps() {
    const double reach = plan_.mode == ResizeMode::cubic ? 2 : 1;
    const Val shrink = plan_.antialias ? n_.min(scale_, number(1)) : number(1);
    const Val first = add(n_.unary(UnaryOp::floor, div(number(-reach), shrink)), number(1));
    const Val count = n_.cast(sub(number(2), n_.mul(number(2), first)), DType::i64);
    const std::vector<Expr> taps = n_.dims(n_.reshape(count, {1}), "the number of taps");
    if (n_.failed() || taps.size() != 1) return {};
    const Val step = n_.cast(steps(taps[0], 0, 2), kType);
    Val position, distance;
    if (exact_) {
      const Val whole = n_.binary(BinaryOp::floor_div, above_, below_),
                rest = div(n_.cast(sub(above_, n_.mul(whole, below_)), kType),
                           n_.cast(below_, kType)),
                offset = add(first, step);
      position = add(whole, n_.cast(offset, DType::i64));
      distance = sub(offset, rest);
    } else {
      const Val at = add(add(n_.unary(UnaryOp::floor, x_), first), step);
      position = n_.cast(at, DType::i64);
      distance = sub(at, x_);
    }
    Val weight = kernel(n_.unary(UnaryOp::abs, n_.mul(distance, shrink)));
    if (plan_.exclude_outside) {
      const Val beyond = n_.binary(BinaryOp::logical_or, n_.less(position, integer(n_, 0)),
                                   n_.binary(BinaryOp::le, extent_, position));
      weight = n_.select(beyond, number(0), weight);
    }
    if (plan_.exclude_outside || plan_.antialias) {
      const Val sum = n_.reduce(ReduceKind::sum, weight, {0}, true);
      weight = div(weight, n_.select(n_.binary(BinaryOp::eq, sum, number(0)), number(1), sum));
    }
    return {position, weight};
  }

  Val outside() const { return outside_; }

 private:
  // The coordinates by scales, in floats as the operator computes them. For crops it also sets
  // `outside_`: true where they lie outside.
  Val coordinates() {
    const Val at = n_.cast(steps(axis_.out, 0, 1), kType), width = scaled_extent(),
              half = number(0.5);
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

  Val scaled_extent() {
    if (!axis_.above.valid()) return n_.mul(scale_, in_);
    return n_.cast(
        div(n_.cast(n_.mul(axis_.above, extent_), DType::f64), n_.cast(axis_.below, DType::f64)),
        kType);
  }

  // The coordinates by sizes, each as above / below, where `below` is positive. The formulas are
  // those of resize_taps (ir/graph/ops/resize.cpp), multiplied out.
  void find_quotient() {
    const auto times = [&](Val a, Val b) { return n_.mul(a, b); };
    const Val one = integer(n_, 1), two = integer(n_, 2), zero = integer(n_, 0), p = axis_.above,
              q = axis_.below, at = steps(axis_.out, 0, 1), out = integer(n_, axis_.out);
    const Val centre = times(add(times(two, at), one), q),
              single = n_.binary(BinaryOp::eq, out, one);
    below_ = times(two, p);
    switch (plan_.coordinates) {
      case CoordinateMode::half_pixel: above_ = sub(centre, p); break;
      case CoordinateMode::asymmetric: above_ = times(times(two, at), q); break;
      case CoordinateMode::tf_half_pixel_for_nn: above_ = centre; break;
      case CoordinateMode::align_corners:
        above_ = n_.select(single, zero, times(times(at, sub(extent_, one)), q));
        below_ = sub(times(p, extent_), q);
        break;
      case CoordinateMode::pytorch_half_pixel:
        above_ = n_.select(single, zero, sub(centre, p));
        break;
      case CoordinateMode::half_pixel_symmetric:
        above_ = add(sub(times(extent_, p), times(out, q)), sub(centre, p));
        break;
    }
    below_ = n_.max(one, below_);
  }

  Val nearest_of_quotient() {
    const auto quotient = [&](Val above, Val below) {
      return n_.binary(BinaryOp::floor_div, above, below);
    };
    const Val one = integer(n_, 1), two = integer(n_, 2), twice = n_.mul(two, below_),
              middle = add(n_.mul(two, above_), below_);
    switch (plan_.nearest) {
      case NearestMode::round_prefer_floor: return quotient(sub(middle, one), twice);
      case NearestMode::round_prefer_ceil: return quotient(middle, twice);
      case NearestMode::floor: return quotient(above_, below_);
      case NearestMode::ceil: return quotient(add(above_, sub(below_, one)), below_);
    }
    TW_UNREACHABLE("bad nearest mode");
  }

  Val number(double value) { return n_.scalar(value, kType); }
  Val add(Val a, Val b) { return n_.add(a, b); }
  Val sub(Val a, Val b) { return n_.sub(a, b); }
  Val div(Val a, Val b) { return n_.div(a, b); }

  // 0, 1, ... along an axis (i64); a constant if it is short.
  Val steps(const Expr& count, int64_t axis, int64_t rank) {
    const auto known = as_const(count);
    if (!known || *known > kFoldElements) return positions(n_, count, rank, axis);
    std::vector<double> values;
    for (int64_t i = 0; i < *known; ++i) values.push_back(static_cast<double>(i));
    std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
    shape[static_cast<size_t>(axis)] = *known;
    return table(n_, values, std::move(shape), DType::i64);
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
  const Val extent_, in_, scale_;
  const bool exact_;
  Val x_;              // coordinates in floats
  Val above_, below_;  // coordinates as quotients of i64
  Val outside_;
};

Val resize_axis(NodeImport& n, Val x, const ResizePlan& plan, const ResizeAxis& axis,
                Val& outside) {
  AxisTaps taps(n, plan, axis, n.dim(x, axis.axis));
  taps.find_coordinates();
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
    return take(n, x, std::move(places), {with_trailing(n, taps.nearest(), rest)},
                std::move(shape));
  }
  const auto [position, weight] = taps.taps();
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
