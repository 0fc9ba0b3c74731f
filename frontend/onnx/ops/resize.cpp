// Resize and its forerunner Upsample.
#include <cmath>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

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

// Versions up to 10 have neither attribute: asymmetric and floor.
void read_coordinates(NodeImport& n, op::Resize& r) {
  const bool old = n.version() < 11;
  const std::string coordinates = old ? "asymmetric" : n.text("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = old ? "floor" : n.text("nearest_mode", "round_prefer_floor");
  if (coordinates == "half_pixel") r.coordinates = CoordinateMode::half_pixel;
  else if (coordinates == "asymmetric") r.coordinates = CoordinateMode::asymmetric;
  else if (coordinates == "align_corners") r.coordinates = CoordinateMode::align_corners;
  else if (coordinates == "pytorch_half_pixel") r.coordinates = CoordinateMode::pytorch_half_pixel;
  else if (coordinates == "half_pixel_symmetric") r.coordinates = CoordinateMode::half_pixel_symmetric;
  else n.fail("attribute coordinate_transformation_mode=" + coordinates, "use half_pixel, asymmetric or align_corners");
  if (nearest == "round_prefer_floor") r.nearest = NearestMode::round_prefer_floor;
  else if (nearest == "round_prefer_ceil") r.nearest = NearestMode::round_prefer_ceil;
  else if (nearest == "floor") r.nearest = NearestMode::floor;
  else if (nearest == "ceil") r.nearest = NearestMode::ceil;
  else n.invalid("attribute nearest_mode is '" + nearest + "'");
}

// floor(extent * scale). A symbolic extent takes scales that are small fractions.
Expr scaled(NodeImport& n, const Expr& extent, double scale) {
  if (const auto fixed = as_const(extent)) return static_cast<int64_t>(std::floor(static_cast<double>(*fixed) * scale));
  for (int64_t below = 1; below <= 64; below *= 2)
    if (const double above = scale * static_cast<double>(below); above == std::floor(above) && above < 1e6)
      return n.simplified(floor_div(extent * Expr(static_cast<int64_t>(above)), Expr(below)));
  n.fail_symbolic(llvm::formatv("a symbolic extent times {0}", scale).str());
  return extent;
}

// size / extent; for symbolic ones the constant factor between them.
double ratio(NodeImport& n, const Expr& size, const Expr& extent) {
  const auto above = as_const(size), below = as_const(extent);
  if (above && below) return *below > 0 ? static_cast<double>(*above) / static_cast<double>(*below) : 1.0;
  for (int64_t factor : {1, 2, 3, 4, 6, 8, 16, 32}) {
    if (is_const(n.simplified(size - extent * Expr(factor)), 0)) return static_cast<double>(factor);
    if (is_const(n.simplified(size * Expr(factor) - extent), 0)) return 1.0 / static_cast<double>(factor);
  }
  n.fail_symbolic("sizes that are no constant multiple of the symbolic extents");
  return 1.0;
}

std::vector<double> read_scales(NodeImport& n, Val scales) {
  const std::optional<Tensor> tensor = n.constant(scales);
  if (!tensor) {
    n.fail_symbolic("scales that are not constant");
    return {};
  }
  std::vector<double> out;
  for (int64_t i = 0; i < tensor->size(); ++i) out.push_back(tensor->at(i));
  for (double scale : out)
    if (!(scale > 0) || scale > 1e6) n.invalid("a scale that is not positive or is above 1e6");
  return out;
}

void finish(NodeImport& n, Val x, op::Resize r, const Ints& axes, const std::vector<double>& scales, const std::vector<Expr>& sizes) {
  r.shape = n.shape(x);
  r.scales.assign(r.shape.size(), 1.0);
  const size_t given = sizes.empty() ? scales.size() : sizes.size();
  if (n.failed()) return;
  if (given != axes.size()) return n.invalid(llvm::formatv("{0} scales or sizes for {1} axes", given, axes.size()).str());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    r.scales[axis] = sizes.empty() ? scales[i] : ratio(n, sizes[i], r.shape[axis]);
    r.shape[axis] = sizes.empty() ? scaled(n, r.shape[axis], scales[i]) : sizes[i];
  }
  n.set(n.emit(std::move(r), {x}));
}

Ints all_axes(NodeImport& n, Val x) {
  Ints axes;
  for (int64_t i = 0; i < n.rank(x); ++i) axes.push_back(i);
  return axes;
}

}  // namespace

void import_resize(NodeImport& n, int) {
  const Val x = n.in(0);
  op::Resize r;
  r.mode = resize_mode(n).value_or(ResizeMode::nearest);
  r.cubic_a = n.real("cubic_coeff_a", -0.75);
  read_coordinates(n, r);
  if (n.integer("antialias", 0) != 0) n.fail("attribute antialias=1", "export without antialiasing");
  if (n.integer("exclude_outside", 0) != 0) n.fail("attribute exclude_outside=1", "export with exclude_outside=0");
  if (n.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    n.fail("attribute keep_aspect_ratio_policy=" + n.text("keep_aspect_ratio_policy", ""), "give the sizes with policy stretch");
  Ints axes = n.integers("axes").value_or(all_axes(n, x));
  for (int64_t& a : axes) a = n.axis(a, n.rank(x));
  const bool old = n.version() < 11;  // inputs X, scales; later X, roi, scales, sizes
  const Val scales_input = n.maybe(old ? 1 : 2), sizes_input = old ? Val{} : n.maybe(3);
  std::vector<double> scales;
  std::vector<Expr> sizes;
  if (sizes_input.valid()) sizes = n.dims(sizes_input, "sizes");
  else if (scales_input.valid()) scales = read_scales(n, scales_input);
  else n.invalid("neither scales nor sizes");
  finish(n, x, std::move(r), axes, scales, sizes);
}

// Scales are an attribute at version 7 and an input at 9.
void import_upsample(NodeImport& n, int) {
  const Val x = n.in(0);
  op::Resize r;
  r.mode = resize_mode(n).value_or(ResizeMode::nearest);
  read_coordinates(n, r);
  std::vector<double> scales;
  if (n.version() >= 9) {
    scales = read_scales(n, n.in(1));
  } else if (const auto given = n.reals("scales")) {
    for (float scale : *given) scales.push_back(static_cast<double>(scale));
  }
  finish(n, x, std::move(r), all_axes(n, x), scales, {});
}

}  // namespace tw::onnx_import
