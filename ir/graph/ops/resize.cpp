#include "ir/graph/ops/resize.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/graph/ops/common.h"

namespace tw {
namespace {

// `width` is the extent that the scale asks for. It may lie between two integers; `out` is the
// lower one. A single point has its coordinate by definition.
float source_coordinate(CoordinateMode mode, float at, float scale, float in, float width,
                        float out) {
  switch (mode) {
    case CoordinateMode::half_pixel: return (at + 0.5f) / scale - 0.5f;
    case CoordinateMode::asymmetric: return at / scale;
    case CoordinateMode::tf_half_pixel_for_nn: return (at + 0.5f) / scale;
    case CoordinateMode::align_corners: return out == 1 ? 0 : at * (in - 1) / (width - 1);
    case CoordinateMode::pytorch_half_pixel: return out == 1 ? 0 : (at + 0.5f) / scale - 0.5f;
    case CoordinateMode::half_pixel_symmetric: {
      float adjustment = out / (scale * in), center = in / 2;
      return center * (1 - adjustment) + (at + 0.5f) / scale - 0.5f;
    }
  }
  TW_UNREACHABLE("bad coordinate mode");
}

int64_t nearest_index(NearestMode mode, float x) {
  switch (mode) {
    case NearestMode::round_prefer_floor: return static_cast<int64_t>(std::ceil(x - 0.5f));
    case NearestMode::round_prefer_ceil: return static_cast<int64_t>(std::floor(x + 0.5f));
    case NearestMode::floor: return static_cast<int64_t>(std::floor(x));
    case NearestMode::ceil: return static_cast<int64_t>(std::ceil(x));
  }
  TW_UNREACHABLE("bad nearest mode");
}

using Wide = __int128;  // holds products of three extents of 40 bits

struct Quotient {
  Wide above = 0, below = 1;  // below > 0
  Wide floor() const { return above / below - (above % below < 0 ? 1 : 0); }
};

// The scale as a quotient of extents: those of this axis or, where all axes share a scale, of
// another one. nullopt: the scale is a number from the model, which is an f32.
std::optional<Quotient> quotient_of(double scale, int64_t in, int64_t out) {
  if (static_cast<double>(out) / static_cast<double>(in) == scale) return Quotient{out, in};
  if (static_cast<double>(static_cast<float>(scale)) == scale) return std::nullopt;
  // Tries the convergents of the continued fraction.
  Wide above = 1, below = 0, above_before = 0, below_before = 1;
  double rest = scale;
  for (int step = 0; step < 64; ++step) {
    const double whole = std::floor(rest);
    const auto digit = static_cast<int64_t>(whole);
    above_before = std::exchange(above, digit * above + above_before);
    below_before = std::exchange(below, digit * below + below_before);
    if (below > int64_t{1} << 40 || above > int64_t{1} << 40) return std::nullopt;
    if (static_cast<double>(above) / static_cast<double>(below) == scale)
      return Quotient{above, below};
    rest = 1 / (rest - whole);
    if (!(rest < 0x1p40)) return std::nullopt;
  }
  return std::nullopt;
}

// source_coordinate for the scale p / q, computed as an exact quotient
Quotient exact_coordinate(CoordinateMode mode, int64_t at, const Quotient& scale, int64_t in,
                          int64_t out) {
  const Wide p = scale.above, q = scale.below, centre = (2 * Wide(at) + 1) * q;
  switch (mode) {
    case CoordinateMode::half_pixel: return {centre - p, 2 * p};
    case CoordinateMode::asymmetric: return {at * q, p};
    case CoordinateMode::tf_half_pixel_for_nn: return {centre, 2 * p};
    case CoordinateMode::align_corners:
      return out == 1 || p * in <= q ? Quotient{} : Quotient{at * (Wide(in) - 1) * q, p * in - q};
    case CoordinateMode::pytorch_half_pixel:
      return out == 1 ? Quotient{} : Quotient{centre - p, 2 * p};
    case CoordinateMode::half_pixel_symmetric: return {in * p - out * q + centre - p, 2 * p};
  }
  TW_UNREACHABLE("bad coordinate mode");
}

Wide nearest_index(NearestMode mode, const Quotient& x) {
  switch (mode) {
    case NearestMode::round_prefer_floor:
      return Quotient{2 * x.above + x.below - 1, 2 * x.below}.floor();
    case NearestMode::round_prefer_ceil:
      return Quotient{2 * x.above + x.below, 2 * x.below}.floor();
    case NearestMode::floor: return x.floor();
    case NearestMode::ceil: return Quotient{x.above + x.below - 1, x.below}.floor();
  }
  TW_UNREACHABLE("bad nearest mode");
}

struct Place {
  int64_t nearest = 0, left = 0;
  double fraction = 0;  // distance from `left`
};

Place exact_place(const op::Resize& resize, const Quotient& scale, int64_t at, int64_t in,
                  int64_t out) {
  const auto inside = [&](Wide index) {  // farther taps all read the edge
    return static_cast<int64_t>(std::clamp<Wide>(index, -4, Wide(in) + 4));
  };
  const Quotient x = exact_coordinate(resize.coordinates, at, scale, in, out);
  const Wide left = x.floor();
  return {inside(nearest_index(resize.nearest, x)), inside(left),
          static_cast<double>(x.above - left * x.below) / static_cast<double>(x.below)};
}

Place float_place(const op::Resize& resize, float scale, int64_t at, int64_t in, float width,
                  int64_t out) {
  float x = source_coordinate(resize.coordinates, static_cast<float>(at), scale,
                              static_cast<float>(in), width, static_cast<float>(out));
  x = std::clamp(x, -4.0f, static_cast<float>(in) + 4);  // farther taps all read the edge
  const auto left = static_cast<int64_t>(std::floor(x));
  return {nearest_index(resize.nearest, x), left,
          static_cast<double>(x) - static_cast<double>(left)};
}

double cubic_weight(double a, double distance) {  // the kernel by Keys
  double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

bool same_axis(const op::Resize& resize, size_t axis, int64_t in, int64_t out) {
  return in == out && resize.scales[axis] == 1;
}

}  // namespace

std::vector<std::vector<ResizeTap>> resize_taps(const op::Resize& resize, size_t axis, int64_t in,
                                                int64_t out) {
  std::vector<std::vector<ResizeTap>> taps(static_cast<size_t>(out));
  const double exact = resize.scales[axis] * static_cast<double>(in), whole = std::round(exact);
  const auto width = static_cast<float>(std::fabs(exact - whole) < 1e-4 ? whole : exact);
  const std::optional<Quotient> quotient = quotient_of(resize.scales[axis], in, out);
  for (int64_t i = 0; i < out; ++i) {
    std::vector<ResizeTap>& list = taps[static_cast<size_t>(i)];
    if (same_axis(resize, axis, in, out)) {
      list.push_back({i, 1});
      continue;
    }
    const auto [nearest, left, fraction] =
        quotient ? exact_place(resize, *quotient, i, in, out)
                 : float_place(resize, static_cast<float>(resize.scales[axis]), i, in, width, out);
    auto add = [&](int64_t index, double weight) {
      list.push_back({std::clamp<int64_t>(index, 0, in - 1), weight});
    };
    switch (resize.mode) {
      case ResizeMode::nearest: add(nearest, 1); break;
      case ResizeMode::linear:
        add(left, 1 - fraction);
        add(left + 1, fraction);
        break;
      case ResizeMode::cubic:
        for (int64_t k = -1; k <= 2; ++k)
          add(left + k, cubic_weight(resize.cubic_a, fraction - static_cast<double>(k)));
        break;
    }
  }
  return taps;
}

Expected<TensorType> infer_resize(const OpAttrs& attrs, const Types& in) {
  const op::Resize& resize = std::get<op::Resize>(attrs);
  const TensorType& x = *in[0];
  size_t rank = x.shape.size();
  if (resize.shape.size() != rank)
    return make_error(DiagCode::invalid_model, "shape has {0} entries, expected {1}",
                      resize.shape.size(), rank);
  if (resize.scales.size() != rank)
    return make_error(DiagCode::invalid_model, "scales has {0} entries, expected {1}",
                      resize.scales.size(), rank);
  if (resize.mode != ResizeMode::nearest && !is_float(x.dtype))
    return input_error(0, "x", "{0} is interpolated, expected a float type", dtype_name(x.dtype));
  TensorType out{x.dtype, {}, {}};
  for (size_t i = 0; i < rank; ++i) {
    TW_TRY(check_dim_expr(resize.shape[i]));
    if (!(resize.scales[i] > 0) || std::isinf(resize.scales[i]))
      return make_error(DiagCode::invalid_model,
                        "scales has an entry of {0}, expected a positive number", resize.scales[i]);
    if (is_const(x.shape[i], 0) && !is_const(resize.shape[i], 0))
      return input_error(0, "x", "axis {0} of {1} is empty", i, to_string(x));
    out.shape.push_back(simplify_dim(resize.shape[i]));
  }
  return out;
}

Expected<Tensor> evaluate_resize(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Resize& resize = std::get<op::Resize>(attrs);
  Tensor current = *in[0];
  std::vector<int64_t> shape = extents(out.shape);
  if (element_count(shape) == 0) return Tensor::zeros(out.dtype, shape);
  if (resize.mode == ResizeMode::nearest) {
    IndexTables tables(shape.size());
    std::vector<int64_t> strides = row_major_strides(current.shape);
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (const auto& taps : resize_taps(resize, axis, current.shape[axis], shape[axis]))
        tables[axis].push_back(taps[0].index * strides[axis]);
    return gather_tables(current, tables);
  }
  std::vector<double> values(static_cast<size_t>(current.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = current.at(static_cast<int64_t>(i));
  std::vector<int64_t> at = current.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {  // one axis after the other, in double
    if (same_axis(resize, axis, at[axis], shape[axis])) continue;
    auto taps = resize_taps(resize, axis, at[axis], shape[axis]);
    int64_t inner = element_count(std::span<const int64_t>(at).subspan(axis + 1)),
            extent = at[axis];
    at[axis] = shape[axis];
    std::vector<double> next(static_cast<size_t>(element_count(at)));
    for (size_t i = 0; i < next.size(); ++i) {
      int64_t flat = static_cast<int64_t>(i),
              base = flat / inner / shape[axis] * extent * inner + flat % inner;
      for (const ResizeTap& tap : taps[static_cast<size_t>(flat / inner % shape[axis])])
        next[i] += tap.weight * values[static_cast<size_t>(base + tap.index * inner)];
    }
    values = std::move(next);
  }
  return tensor_of(out.dtype, shape, values);
}

}  // namespace tw
