// Importers of sampling at computed coordinates: GridSample, AffineGrid, DeformConv. They work by
// taps: y is the sum over taps of weight * x[position], with the same weights and positions for all
// channels.
#include <functional>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

enum class Border { zeros, edge, reflect };

// The taps of one spatial axis.
struct SampleTaps {
  Val position, weight;  // position: i64; weight: absent for one tap of weight 1
  Val inside;            // bool, border zeros only
};

class Sampler {
 public:
  Sampler(NodeImport& n, DType type) : n_(n), type_(type) {}

  Val number(double value) { return n_.scalar(value, type_); }
  Val extent(const Expr& e) { return n_.cast(integer(n_, e), type_); }
  Val floor(Val v) { return n_.unary(UnaryOp::floor, v); }
  Val both(Val a, Val b) { return n_.binary(BinaryOp::logical_and, a, b); }

  // Folds v back and forth between low and high.
  Val reflected(Val v, Val low, Val high) {
    const Val span = n_.sub(high, low), period = n_.mul(span, number(2)), zero = number(0);
    const Val safe = n_.select(n_.less(zero, period), period, number(1));
    const Val from = n_.sub(v, low), phase = n_.sub(from, n_.mul(floor(n_.div(from, safe)), safe));
    const Val folded = n_.select(n_.less(span, phase), n_.sub(period, phase), phase);
    return n_.select(n_.less(zero, period), n_.add(low, folded), low);
  }

  // The taps beside the coordinates v; each is brought back into the map by itself. `steps` has 0
  // ... count - 1 along an axis that v does not have.
  SampleTaps taps(Val v, int64_t count, Val steps, Border border, Val size, Val low, Val high) {
    SampleTaps t;
    Val place = v;
    if (count > 1) {
      const Val first = n_.sub(floor(v), number(count == 4 ? 1 : 0));
      place = n_.add(first, steps);
      t.weight = count == 4 ? cubic(n_.unary(UnaryOp::abs, n_.sub(v, place)))
                            : n_.max(number(0),
                                     n_.sub(number(1), n_.unary(UnaryOp::abs, n_.sub(v, place))));
    }
    if (border == Border::edge) place = n_.min(n_.sub(size, number(1)), n_.max(number(0), place));
    if (border == Border::reflect) place = reflected(place, low, high);
    if (border == Border::zeros) {
      t.inside = both(n_.binary(BinaryOp::le, number(0), place), n_.less(place, size));
      if (t.weight.valid()) t.weight = n_.select(t.inside, t.weight, number(0));
    }
    t.position = n_.cast(place, DType::i64);
    return t;
  }

 private:
  Val cubic(Val d) {  // Keys' kernel with a = -0.75
    const double a = -0.75;
    const auto times = [&](Val x, Val y) { return n_.mul(x, y); };
    const Val near = n_.add(times(times(n_.sub(times(number(a + 2), d), number(a + 3)), d), d),
                            number(1));
    const Val far = n_.sub(
        times(n_.add(times(n_.sub(times(number(a), d), number(5 * a)), d), number(8 * a)), d),
        number(4 * a));
    return n_.select(n_.binary(BinaryOp::le, d, number(1)), near,
                     n_.select(n_.less(d, number(2)), far, number(0)));
  }

  NodeImport& n_;
  DType type_;
};

// 0 ... count - 1 along one axis, as a constant.
Val tap_steps(NodeImport& n, int64_t count, int64_t rank, int64_t axis, DType type) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  return table(n, values, std::move(shape), type);
}

// The sums [lead..., points...] for x [lead..., spatial...] and tables that broadcast to [lead...,
// taps by axis..., points...].
Val weighted_sum(NodeImport& n, Val x, int64_t lead, const std::vector<SampleTaps>& axes,
                 const Ints& counts, const Shape& points) {
  if (n.failed()) return {};
  const auto spatial = static_cast<int64_t>(axes.size());
  Ints places = all_axes(lead), reduced;
  Shape shape(n.shape(x).begin(), n.shape(x).begin() + lead);
  std::vector<Val> tables;
  Val weight;
  for (int64_t i = 0; i < spatial; ++i) {
    const SampleTaps& axis = axes[static_cast<size_t>(i)];
    places.push_back(-1);
    reduced.push_back(lead + i);
    shape.emplace_back(counts[static_cast<size_t>(i)]);
    tables.push_back(axis.position);
    if (axis.weight.valid()) weight = weight.valid() ? n.mul(weight, axis.weight) : axis.weight;
  }
  shape.insert(shape.end(), points.begin(), points.end());
  Val read = take(n, x, std::move(places), std::move(tables), std::move(shape));
  if (weight.valid())
    return n.reduce(ReduceKind::sum, n.mul(read, n.cast(weight, n.dtype(x))), std::move(reduced),
                    false);
  for (const SampleTaps& axis : axes)
    if (axis.inside.valid()) read = n.select(axis.inside, read, n.scalar(0, read));
  return read;
}

std::optional<Border> read_border(NodeImport& n) {
  const std::string mode = n.text("padding_mode", "zeros");
  if (mode == "zeros") return Border::zeros;
  if (mode == "border") return Border::edge;
  if (mode == "reflection") return Border::reflect;
  n.invalid("attribute padding_mode is '" + mode + "'");
  return std::nullopt;
}

}  // namespace

void import_grid_sample(NodeImport& n) {
  const Val x = n.in(0), grid = n.in(1);
  const std::string mode = n.text("mode", n.version() < 20 ? "bilinear" : "linear");
  const Border border = read_border(n).value_or(Border::zeros);
  const bool corners = n.integer("align_corners", 0) != 0;
  const int64_t rank = n.rank(x), spatial = rank - 2;
  if (n.failed()) return;
  int64_t taps = 0;
  if (mode == "nearest") taps = 1;
  if (mode == "linear" || mode == "bilinear") taps = 2;
  if (mode == "cubic" || mode == "bicubic") taps = 4;
  if (taps == 0) return n.invalid("attribute mode is '" + mode + "'");
  if (spatial < 1 || n.rank(grid) != rank ||
      n.need_static_dim(grid, rank - 1, "GridSample") != spatial)
    return n.invalid(
        llvm::formatv("a grid of rank {0} for an input of rank {1}", n.rank(grid), rank).str());
  Shape out(n.shape(grid).begin() + 1, n.shape(grid).end() - 1);
  Expr points = 1;
  for (const Expr& e : out) points = points * e;
  points = n.simplified(points);
  const bool rounded = taps > 1 && !is_float(n.dtype(x));
  const Val data = rounded ? n.cast(x, DType::f32) : x;
  const DType type = n.dtype(grid) == DType::f64 ? DType::f64 : DType::f32;
  Sampler s(n, type);
  std::vector<SampleTaps> axes;
  const int64_t with_taps = taps > 1 ? spatial : 0;  // axes of taps in front of the points
  for (int64_t i = 0; i < spatial && !n.failed(); ++i) {
    Shape flat(static_cast<size_t>(3 + with_taps), Expr(1));
    flat.front() = n.dim(grid, 0);
    flat.back() = points;
    const Val g = n.cast(n.reshape(n.slice(grid, rank - 1, spatial - 1 - i, 1), flat), type);
    const Val d = s.extent(n.dim(x, i + 2)), one = s.number(1), half = s.number(0.5);
    const Val last = n.sub(d, one), low = s.number(corners ? 0 : -0.5),
              high = corners ? last : n.sub(d, half), unit = n.add(g, one);
    Val v = corners ? n.mul(n.mul(unit, half), last) : n.mul(n.sub(n.mul(unit, d), one), half);
    if (taps == 1) v = n.unary(UnaryOp::round, v);
    if (border == Border::reflect) v = s.reflected(v, low, high);
    const Val steps = taps > 1 ? tap_steps(n, taps, 3 + with_taps, 2 + i, type) : Val{};
    axes.push_back(s.taps(v, taps, steps, border, d, low, high));
  }
  Val y;
  if (taps > 1) {
    y = weighted_sum(n, data, 2, axes, Ints(static_cast<size_t>(spatial), taps), {points});
  } else if (!n.failed()) {
    Ints places = {0, 1};
    places.resize(static_cast<size_t>(rank), -1);
    std::vector<Val> tables;
    for (const SampleTaps& axis : axes) tables.push_back(axis.position);
    y = take(n, data, std::move(places), std::move(tables), {n.dim(x, 0), n.dim(x, 1), points});
    for (const SampleTaps& axis : axes)
      if (axis.inside.valid()) y = n.select(axis.inside, y, n.scalar(0, y));
  }
  out.insert(out.begin(), {n.dim(x, 0), n.dim(x, 1)});
  y = n.reshape(y, std::move(out));
  n.set(rounded ? n.emit(op::Cast{n.dtype(x), true}, {n.unary(UnaryOp::round, y)}) : y);
}

// grid[n, spatial..., r] = theta[n, r, :] . (x, y (, z), 1), coordinates from -1 to 1
void import_affine_grid(NodeImport& n) {
  const Val theta = n.in(0);
  const std::vector<Expr> size = n.dims(n.in(1), "the size");
  const bool corners = n.integer("align_corners", 0) != 0;
  if (n.failed()) return;
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  const DType type = n.dtype(theta);
  if (spatial < 2 || spatial > 3 || n.rank(theta) != 3)
    return n.invalid("AffineGrid needs matrices and a size of 4 or 5 entries");
  const auto column = [&](int64_t i) {
    Shape shape(static_cast<size_t>(spatial) + 2, Expr(1));
    shape.front() = n.dim(theta, 0);
    shape.back() = n.dim(theta, 1);
    return n.reshape(n.slice(theta, 2, i, 1), shape);
  };
  Val sum;
  for (int64_t i = 0; i < spatial; ++i) {  // coordinate i belongs to axis i from the end
    const int64_t axis = spatial - i;
    const Expr& extent = size[static_cast<size_t>(axis) + 1];
    const Val d = n.cast(integer(n, extent), type), one = n.scalar(1, type),
              two = n.scalar(2, type);
    const Val at = n.cast(positions(n, extent, spatial + 2, axis), type);
    const Val place = corners ? n.sub(n.div(n.mul(at, two), n.max(one, n.sub(d, one))), one)
                              : n.sub(n.div(n.add(n.mul(at, two), one), d), one);
    const Val part = n.mul(column(i), place);
    sum = sum.valid() ? n.add(sum, part) : part;
  }
  n.set(n.add(sum, column(spatial)));
}

namespace {

// The extents and groups of a DeformConv.
struct DeformShape {
  int64_t spatial = 0, group = 1, offsets = 1;
  Ints kernel;
  Shape out;
  Window window;
};

// One axis' part of the offsets [N, G * taps * axes, out...], as [N, G, 1, 1 (a tap of each
// axis)..., kernel..., out...].
Val offset_of(NodeImport& n, Val offset, const DeformShape& d, int64_t axis) {
  Shape parted = {n.dim(offset, 0), d.offsets};
  for (const int64_t k : d.kernel) parted.emplace_back(k);
  const auto place = static_cast<int64_t>(parted.size());
  parted.emplace_back(d.spatial);
  parted.insert(parted.end(), d.out.begin(), d.out.end());
  const Val part = n.slice(n.reshape(offset, parted), place, axis, 1);
  Shape shape = {n.dim(offset, 0), d.offsets, 1};
  shape.insert(shape.end(), static_cast<size_t>(d.spatial), Expr(1));
  for (const int64_t k : d.kernel) shape.emplace_back(k);
  shape.insert(shape.end(), d.out.begin(), d.out.end());
  return n.reshape(part, std::move(shape));
}

std::optional<DeformShape> deform_shape(NodeImport& n, Val x, Val w, Val offset) {
  DeformShape d;
  d.kernel = kernel_of(n, x, w);
  if (n.failed()) return std::nullopt;
  d.spatial = n.rank(x) - 2;
  d.window = read_window(n, x, d.kernel);
  d.group = n.integer("group", 1);
  d.offsets = n.integer("offset_group", 1);
  if (n.rank(offset) != n.rank(x)) n.invalid("offsets of another rank than the input");
  if (n.failed()) return std::nullopt;
  d.out.assign(n.shape(offset).begin() + 2, n.shape(offset).end());
  const int64_t channels = n.need_static_dim(x, 1, "DeformConv"),
                maps = n.need_static_dim(w, 0, "DeformConv");
  if (n.failed()) return std::nullopt;
  if (d.group < 1 || d.offsets < 1 || channels % d.group != 0 || channels % d.offsets != 0 ||
      maps % d.group != 0)
    n.invalid(llvm::formatv("{0} channels, {1} maps in groups of {2}, offset groups of {3}",
                            channels, maps, d.group, d.offsets)
                  .str());
  return d;
}

// The sampled input [N, C, kernel..., out...].
Val deformed_columns(NodeImport& n, Val x, Val offset, const DeformShape& d) {
  const DType type = n.dtype(x);
  Sampler s(n, type);
  const int64_t rank = 3 + 3 * d.spatial;
  std::vector<SampleTaps> axes;
  for (int64_t i = 0; i < d.spatial && !n.failed(); ++i) {
    const auto at = static_cast<size_t>(i);
    const Val tap = n.mul(positions(n, d.kernel[at], rank, 3 + d.spatial + i),
                          integer(n, d.window.dilations[at]));
    const Val out = n.mul(positions(n, d.out[at], rank, 3 + 2 * d.spatial + i),
                          integer(n, d.window.strides[at]));
    const Val base = n.sub(n.add(tap, out), integer(n, d.window.pads[at]));
    const Val v = n.add(n.cast(base, type), offset_of(n, offset, d, i));
    const Val size = s.extent(n.dim(x, i + 2));
    axes.push_back(
        s.taps(v, 2, tap_steps(n, 2, rank, 3 + i, type), Border::zeros, size, s.number(0), size));
  }
  if (n.failed()) return {};
  if (n.has(4)) {  // a factor for every sample
    Shape shape = {n.dim(offset, 0), d.offsets, 1};
    shape.insert(shape.end(), static_cast<size_t>(d.spatial), Expr(1));
    for (const int64_t k : d.kernel) shape.emplace_back(k);
    shape.insert(shape.end(), d.out.begin(), d.out.end());
    axes[0].weight = n.mul(axes[0].weight, n.reshape(n.in(4), std::move(shape)));
  }
  const int64_t channels = n.need_static_dim(x, 1, "DeformConv");
  Shape grouped = {n.dim(x, 0), d.offsets, channels / d.offsets}, points;
  grouped.insert(grouped.end(), n.shape(x).begin() + 2, n.shape(x).end());
  for (const int64_t k : d.kernel) points.emplace_back(k);
  points.insert(points.end(), d.out.begin(), d.out.end());
  return weighted_sum(n, n.reshape(x, std::move(grouped)), 3, axes,
                      Ints(static_cast<size_t>(d.spatial), 2), points);
}

}  // namespace

// Bilinear samples beside each point of the window, then a matrix product with the weights.
void import_deform_conv(NodeImport& n) {
  const Val x = n.in(0), w = n.in(1), offset = n.in(2);
  const auto d = deform_shape(n, x, w, offset);
  if (!d || n.failed()) return;
  const Val columns = deformed_columns(n, x, offset, *d);
  const int64_t maps = n.need_static_dim(w, 0, "DeformConv"),
                channels = n.need_static_dim(x, 1, "DeformConv");
  int64_t taps = 1;
  for (const int64_t k : d->kernel) taps *= k;
  Expr points = 1;
  for (const Expr& e : d->out) points = points * e;
  const int64_t depth = channels / d->group * taps;
  const Val left = n.reshape(w, {1, d->group, maps / d->group, depth});
  Val y = n.emit(op::MatMul{},
                 {left, n.reshape(columns, {n.dim(x, 0), d->group, depth, n.simplified(points)})});
  Shape shape = {n.dim(x, 0), maps};
  shape.insert(shape.end(), d->out.begin(), d->out.end());
  y = n.reshape(y, std::move(shape));
  if (n.failed()) return;
  if (n.has(3)) y = n.add(y, n.reshape(n.in(3), only_axis(n.rank(y) - 1, 0, maps)));
  n.set(y);
}

}  // namespace tw::onnx_import
