// Importers of Resize and its forerunner Upsample. They make the core operator if scales and
// resized extents are known, otherwise tensors of taps (resize_taps.cpp).
#include "frontend/onnx/ops/resample/resize.h"

#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

std::optional<ResizeMode> resize_mode(NodeImport& n) {
  const std::string mode = n.text("mode", "nearest");
  if (mode == "nearest") return ResizeMode::nearest;
  if (mode == "linear" || mode == "bilinear") return ResizeMode::linear;
  if (mode == "cubic") return ResizeMode::cubic;
  n.invalid("attribute mode is '" + mode + "'");
  return std::nullopt;
}

// Version 10 has neither attribute: coordinates are asymmetric, and an axis that grows takes the
// floor. For an axis that shrinks it says nothing; its own test and onnxruntime take the ceiling.
void read_coordinates(NodeImport& n, ResizePlan& plan) {
  const bool old = n.version() < 11;
  const std::string coordinates = old ? "asymmetric"
                                      : n.text("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = old ? "floor" : n.text("nearest_mode", "round_prefer_floor");
  if (coordinates == "half_pixel") plan.coordinates = CoordinateMode::half_pixel;
  else if (coordinates == "asymmetric") plan.coordinates = CoordinateMode::asymmetric;
  else if (coordinates == "align_corners") plan.coordinates = CoordinateMode::align_corners;
  else if (coordinates == "pytorch_half_pixel")
    plan.coordinates = CoordinateMode::pytorch_half_pixel;
  else if (coordinates == "half_pixel_symmetric")
    plan.coordinates = CoordinateMode::half_pixel_symmetric;
  else if (coordinates == "tf_crop_and_resize") plan.crop = true;
  else if (coordinates == "tf_half_pixel_for_nn")
    plan.coordinates = CoordinateMode::tf_half_pixel_for_nn;
  else n.invalid("attribute coordinate_transformation_mode is '" + coordinates + "'");
  if (nearest == "round_prefer_floor") plan.nearest = NearestMode::round_prefer_floor;
  else if (nearest == "round_prefer_ceil") plan.nearest = NearestMode::round_prefer_ceil;
  else if (nearest == "floor") plan.nearest = NearestMode::floor;
  else if (nearest == "ceil") plan.nearest = NearestMode::ceil;
  else n.invalid("attribute nearest_mode is '" + nearest + "'");
}

// floor(extent * scale) of a symbolic extent, for scales that are fractions over a power of two up
// to 64.
std::optional<Expr> scaled(NodeImport& n, const Expr& extent, double scale) {
  for (int64_t below = 1; below <= 64; below *= 2)
    if (const double above = scale * static_cast<double>(below);
        above == std::floor(above) && above < 1e6)
      return n.simplified(floor_div(extent * Expr(static_cast<int64_t>(above)), Expr(below)));
  return std::nullopt;
}

Val element(NodeImport& n, Val list, int64_t i) { return n.reshape(n.slice(list, 0, i, 1), {}); }

std::optional<double> constant_of(NodeImport& n, Val v) {
  const auto tensor = n.constant(v);
  return tensor && tensor->size() == 1 ? std::optional<double>(tensor->at(0)) : std::nullopt;
}

Val extent_of(NodeImport& n, Val x, int64_t axis) {
  return n.cast(integer(n, n.dim(x, axis)), DType::f64);
}

constexpr double kMostScale = 1e6;

void check_scale(NodeImport& n, const ResizeAxis& axis) {
  if (!axis.factor) return;
  if (!(*axis.factor > 0))
    n.invalid(llvm::formatv("a scale is {0}, a positive number is needed", *axis.factor).str());
  else if (*axis.factor > kMostScale)
    n.fail(llvm::formatv("a scale is {0}, at most 1e6 is supported", *axis.factor).str());
}

// An extent that is computed as a value: a number, or a symbol that the run reads.
Expr extent_from(NodeImport& n, Val value) {
  const std::vector<Expr> dims = n.dims(n.reshape(n.cast(value, DType::i64), {1}),
                                        "a resized extent");
  return dims.size() == 1 ? dims[0] : Expr(1);
}

void scale_axis(NodeImport& n, Val x, ResizeAxis& axis, Val scale) {
  axis.scale = n.cast(scale, DType::f64);
  axis.factor = constant_of(n, axis.scale);
  check_scale(n, axis);
  if (!axis.factor && !n.failed())
    axis.scale = n.only_where(
        axis.scale,
        n.binary(BinaryOp::logical_and, n.less(n.scalar(0, DType::f64), axis.scale),
                 n.binary(BinaryOp::le, axis.scale, n.scalar(kMostScale, DType::f64))),
        "a scale that is not above 0 and at most 1e6");
  const Expr in = n.dim(x, axis.axis);
  if (n.failed()) return;
  if (!as_const(in) && axis.factor)
    if (const auto out = scaled(n, in, *axis.factor)) {
      axis.out = *out;
      return;
    }
  axis.out = extent_from(n, n.unary(UnaryOp::floor, n.mul(extent_of(n, x, axis.axis), axis.scale)));
}

// The scale size / extent. For symbolic sizes it is the constant factor between them, if there is
// one.
void size_axis(NodeImport& n, Val x, ResizeAxis& axis, const Expr& size) {
  const Expr in = n.dim(x, axis.axis);
  axis.out = size;
  if (as_const(in) && *as_const(in) == 0) return n.invalid("an empty axis is resized");
  Expr above = size, below = in;
  for (const int64_t factor : {1, 2, 3, 4, 6, 8, 16, 32}) {
    if (as_const(in) && as_const(size)) break;
    if (is_const(n.simplified(size - in * Expr(factor)), 0)) above = factor, below = 1;
    if (is_const(n.simplified(size * Expr(factor) - in), 0)) above = 1, below = factor;
  }
  axis.above = integer(n, above), axis.below = integer(n, below);
  axis.scale = n.div(n.cast(axis.above, DType::f64), n.cast(axis.below, DType::f64));
  axis.factor = constant_of(n, axis.scale);
  check_scale(n, axis);
}

// Gives all axes one scale: the smallest that the sizes ask for, or the largest if `larger`.
void keep_aspect_ratio(NodeImport& n, Val x, ResizePlan& plan, bool larger) {
  if (n.failed() || plan.axes.empty()) return;
  ResizeAxis one = plan.axes[0];
  for (const ResizeAxis& axis : plan.axes) {
    const Val better = larger ? n.less(one.scale, axis.scale) : n.less(axis.scale, one.scale);
    for (const auto part : {&ResizeAxis::scale, &ResizeAxis::above, &ResizeAxis::below})
      one.*part = n.select(better, axis.*part, one.*part);
  }
  for (ResizeAxis& axis : plan.axes) {
    axis.scale = one.scale, axis.above = one.above, axis.below = one.below;
    axis.factor = constant_of(n, one.scale);
    const Val two = integer(n, 2), in = integer(n, n.dim(x, axis.axis));  // halves go up
    const Val out = n.binary(BinaryOp::floor_div,
                             n.add(n.mul(two, n.mul(one.above, in)), one.below),
                             n.mul(two, one.below));
    if (!n.failed()) axis.out = extent_from(n, out);
  }
}

bool unchanged(NodeImport& n, Val x, const ResizePlan& plan, const ResizeAxis& axis) {
  return !plan.crop && axis.factor == 1.0 &&
         is_const(n.simplified(axis.out - n.dim(x, axis.axis)), 0);
}

void finish(NodeImport& n, Val x, ResizePlan plan) {
  if (n.failed()) return;
  std::erase_if(plan.axes, [&](const ResizeAxis& axis) { return unchanged(n, x, plan, axis); });
  if (plan.axes.empty()) return n.set(x);
  const DType type = n.dtype(x);
  // Integers are interpolated as floats
  const bool rounded = plan.mode != ResizeMode::nearest && !is_float(type);
  const Val from = rounded ? n.cast(x, DType::f32) : x;
  bool known = !plan.antialias && !plan.exclude_outside && !plan.crop;
  for (const ResizeAxis& axis : plan.axes)
    known = known && !(plan.ceil_below_one && axis.factor.value_or(0) < 1) && axis.factor &&
            as_const(axis.out) && as_const(n.dim(x, axis.axis));
  Val y;
  if (known) {
    op::Resize r{plan.mode,
                 plan.coordinates,
                 plan.nearest,
                 plan.cubic_a,
                 std::vector<double>(n.shape(x).size(), 1.0),
                 n.shape(x)};
    for (const ResizeAxis& axis : plan.axes) {
      r.scales[static_cast<size_t>(axis.axis)] = *axis.factor;
      r.shape[static_cast<size_t>(axis.axis)] = axis.out;
    }
    y = n.emit(std::move(r), {from});
  } else {
    y = resize_by_taps(n, from, plan);
  }
  n.set(rounded ? n.emit(op::Cast{type, true}, {n.unary(UnaryOp::round, y)}) : y);
}

// Reads the region: the starts of all axes, then the ends.
void read_region(NodeImport& n, ResizePlan& plan) {
  if (!plan.crop) return;
  const Val roi = n.cast(n.in(1), DType::f64);
  const auto count = static_cast<int64_t>(plan.axes.size());
  if (n.failed()) return;
  if (n.rank(roi) != 1 || (n.static_dim(roi, 0) && *n.static_dim(roi, 0) != 2 * count))
    return n.invalid(
        llvm::formatv("tf_crop_and_resize needs a region of {0} numbers", 2 * count).str());
  for (int64_t i = 0; i < count; ++i) {
    plan.axes[static_cast<size_t>(i)].begin = element(n, roi, i);
    plan.axes[static_cast<size_t>(i)].end = element(n, roi, count + i);
  }
}

// An optional input that is present and not empty: version 11 passes empty inputs for absent ones.
Val given(NodeImport& n, size_t i) {
  const Val v = n.maybe(i);
  return v.valid() && n.rank(v) == 1 && n.static_dim(v, 0) == 0 ? Val{} : v;
}

void read_scales(NodeImport& n, Val x, ResizePlan& plan, Val scales) {
  const auto count = static_cast<int64_t>(plan.axes.size());
  if (n.failed()) return;
  if (n.rank(scales) != 1 || (n.static_dim(scales, 0) && *n.static_dim(scales, 0) != count))
    return n.invalid(llvm::formatv("{0} axes need as many scales", count).str());
  for (int64_t i = 0; i < count && !n.failed(); ++i)
    scale_axis(n, x, plan.axes[static_cast<size_t>(i)], element(n, scales, i));
}

void read_sizes(NodeImport& n, Val x, ResizePlan& plan, Val sizes) {
  const std::vector<Expr> list = n.dims(sizes, "sizes");
  if (n.failed()) return;
  if (list.size() != plan.axes.size())
    return n.invalid(llvm::formatv("{0} sizes for {1} axes", list.size(), plan.axes.size()).str());
  for (size_t i = 0; i < list.size() && !n.failed(); ++i) size_axis(n, x, plan.axes[i], list[i]);
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger" || policy == "not_smaller")
    keep_aspect_ratio(n, x, plan, policy == "not_smaller");
  else if (policy != "stretch") n.invalid("attribute keep_aspect_ratio_policy is '" + policy + "'");
}

}  // namespace

void import_resize(NodeImport& n) {
  const Val x = n.in(0);
  ResizePlan plan;
  plan.mode = resize_mode(n).value_or(ResizeMode::nearest);
  plan.cubic_a = n.real("cubic_coeff_a", -0.75);
  plan.extrapolation = n.real("extrapolation_value", 0);
  plan.antialias = n.integer("antialias", 0) != 0 && plan.mode != ResizeMode::nearest;
  plan.exclude_outside = n.integer("exclude_outside", 0) != 0 && plan.mode != ResizeMode::nearest;
  read_coordinates(n, plan);
  for (const int64_t a : n.integers("axes").value_or(all_axes(n.rank(x))))
    plan.axes.push_back({n.axis(a, n.rank(x)), {}, {}, {}, {}, {}, {}, {}});
  if (n.failed()) return;
  const bool old = n.version() < 11;  // inputs X, scales; later X, roi, scales, sizes
  plan.ceil_below_one = old && plan.mode == ResizeMode::nearest;
  const Val scales = old ? n.in(1) : given(n, 2), sizes = old ? Val{} : given(n, 3);
  read_region(n, plan);
  if (sizes.valid()) read_sizes(n, x, plan, sizes);
  else if (scales.valid()) read_scales(n, x, plan, scales);
  else n.invalid("neither scales nor sizes");
  finish(n, x, std::move(plan));
}

// Scales are an attribute at version 7, and an input at version 9.
void import_upsample(NodeImport& n) {
  const Val x = n.in(0);
  ResizePlan plan;
  plan.mode = resize_mode(n).value_or(ResizeMode::nearest);
  plan.coordinates = CoordinateMode::asymmetric;
  plan.nearest = NearestMode::floor;
  for (int64_t a = 0; a < n.rank(x); ++a) plan.axes.push_back({a, {}, {}, {}, {}, {}, {}, {}});
  if (n.version() >= 9) {
    read_scales(n, x, plan, n.in(1));
  } else {
    std::vector<double> values;
    for (const float scale : n.reals("scales").value_or(std::vector<float>()))
      values.push_back(static_cast<double>(scale));
    const auto count = static_cast<int64_t>(values.size());
    read_scales(n, x, plan, table(n, values, {count}, DType::f32));
  }
  finish(n, x, std::move(plan));
}

}  // namespace tw::onnx_import
