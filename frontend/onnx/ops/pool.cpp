// Importers of pooling, and of Col2Im, which puts windows back together.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

op::Pool read_pool(NodeImport& n, Val x, PoolKind kind) {
  op::Pool pool;
  pool.kind = kind;
  pool.kernel = n.integers("kernel_shape").value_or(Ints());
  if (!n.failed() &&
      (pool.kernel.empty() || static_cast<int64_t>(pool.kernel.size()) != n.rank(x) - 2))
    n.invalid(llvm::formatv("kernel_shape has {0} entries for an input of rank {1}",
                            pool.kernel.size(), n.rank(x))
                  .str());
  for (int64_t extent : pool.kernel)
    n.check_number("an extent of the kernel", extent, 1, kMaxWindow);
  if (n.failed()) return pool;
  Window window = read_window(n, x, pool.kernel);
  pool.strides = std::move(window.strides);
  pool.dilations = std::move(window.dilations);
  pool.pads = std::move(window.pads);
  pool.ceil_mode = n.integer("ceil_mode", 0) != 0;
  pool.count_include_pad = n.integer("count_include_pad", 0) != 0;
  return pool;
}

Ints spatial_axes(NodeImport& n, Val x) {
  if (!n.failed() && n.rank(x) < 2) n.invalid("global pooling needs a batch and a channel axis");
  Ints axes;
  for (int64_t i = 2; i < n.rank(x); ++i) axes.push_back(i);
  return axes;
}

Val power(NodeImport& n, Val x, double p) {
  if (p == 1) return x;
  if (p == 2) return n.mul(x, x);
  return p == 0.5 ? n.unary(UnaryOp::sqrt, x) : n.binary(BinaryOp::pow, x, n.scalar(p, x));
}

// The point of a window's tap along a spatial axis. A tap beyond the input stands for the nearest
// tap of the window inside it, so that each maximum has an index, even if it is the lowest number.
Val point_of_tap(NodeImport& n, const op::Pool& pool, size_t axis, Val window, Val tap,
                 const Expr& extent) {
  const Val start = n.sub(n.mul(window, integer(n, pool.strides[axis])),
                          integer(n, pool.pads[axis]));
  const Val dilation = integer(n, pool.dilations[axis]), last = integer(n, extent - 1);
  const auto between = [&](Val x, Val low, Val high) {
    return n.binary(BinaryOp::max, n.binary(BinaryOp::min, x, high), low);
  };
  const Val first_tap = n.unary(UnaryOp::neg, n.binary(BinaryOp::floor_div, start, dilation));
  const Val last_tap = n.binary(BinaryOp::floor_div, n.sub(last, start), dilation);
  const Val inside = n.add(start, n.mul(between(tap, first_tap, last_tap), dilation));
  return between(inside, integer(n, 0), last);
}

// The flat index of each window's first maximum in the whole input. The windows are laid out as [N,
// C, out..., taps]. If `column_major`, the first spatial axis has stride 1.
Val max_indices(NodeImport& n, Val x, const op::Pool& pool, const Shape& out, bool column_major) {
  const auto spatial = static_cast<int64_t>(pool.kernel.size()), rank = 2 + 2 * spatial;
  Ints places = {0, 1};
  Shape windows(out.begin(), out.end()), flat(out.begin(), out.end());
  std::vector<Val> tables;
  int64_t taps = 1;
  for (int64_t i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i);
    places.push_back(-1);
    tables.push_back(point_of_tap(n, pool, at, positions(n, out[at + 2], rank, 2 + i),
                                  positions(n, pool.kernel[at], rank, 2 + spatial + i),
                                  n.dim(x, i + 2)));
    windows.emplace_back(pool.kernel[at]);
    taps *= pool.kernel[at];
  }
  flat.emplace_back(taps);
  const Val read = take(n, x, std::move(places), std::move(tables), std::move(windows));
  Val tap = n.emit(op::ArgReduce{false, 2 + spatial, false, false},
                   {n.reshape(read, std::move(flat))});
  Expr planes = 1;
  for (int64_t i = 0; i < spatial; ++i) planes = planes * n.dim(x, i + 2);
  const Val image = n.add(n.mul(positions(n, out[0], 2 + spatial, 0), integer(n, n.dim(x, 1))),
                          positions(n, out[1], 2 + spatial, 1));
  Val index = n.mul(image, integer(n, planes));
  for (int64_t i = spatial; i-- > 0;) {
    const auto at = static_cast<size_t>(i);
    const Val kernel = integer(n, pool.kernel[at]);
    const Val own = n.binary(BinaryOp::floor_mod, tap, kernel);
    tap = n.binary(BinaryOp::floor_div, tap, kernel);
    const Val point = point_of_tap(n, pool, at, positions(n, out[at + 2], 2 + spatial, 2 + i), own,
                                   n.dim(x, i + 2));
    Expr stride = 1;
    for (int64_t k = column_major ? 0 : i + 1; k < (column_major ? i : spatial); ++k)
      stride = stride * n.dim(x, k + 2);
    index = n.add(index, n.mul(point, integer(n, stride)));
  }
  return index;
}

}  // namespace

void import_max_pool(NodeImport& n) {
  const Val x = n.in(0);
  const op::Pool pool = read_pool(n, x, PoolKind::max);
  const Val y = n.emit(pool, {x});
  n.set(y);
  if (n.wanted(1) && !n.failed())
    n.set(1, max_indices(n, x, pool, n.shape(y), n.integer("storage_order", 0) != 0));
}

Val average_pool(NodeImport& n, Val x) { return n.emit(read_pool(n, x, PoolKind::average), {x}); }

void import_average_pool(NodeImport& n) { n.set(average_pool(n, n.in(0))); }

void import_global_pool(NodeImport& n, ReduceKind kind) {
  const Val x = n.in(0);
  n.set(n.reduce(kind, x, spatial_axes(n, x), true));
}

// (sum |x|^p)^(1/p)
void import_lp_pool(NodeImport& n) {
  const Val x = n.in(0);
  const double p = static_cast<double>(n.integer("p", 2));
  if (p < 1) return n.invalid("attribute p must be positive");
  const Val sum = n.emit(read_pool(n, x, PoolKind::sum), {power(n, n.unary(UnaryOp::abs, x), p)});
  n.set(power(n, sum, 1 / p));
}

void import_global_lp_pool(NodeImport& n) {
  const Val x = n.in(0);
  const double p = static_cast<double>(n.integer("p", 2));
  if (p < 1) return n.invalid("attribute p must be positive");
  const Val sum = n.reduce(ReduceKind::sum, power(n, n.unary(UnaryOp::abs, x), p),
                           spatial_axes(n, x), true);
  n.set(power(n, sum, 1 / p));
}

namespace {

// An attribute with `count` entries, each at least `least`.
Ints list_of(NodeImport& n, const char* name, size_t count, int64_t fallback, int64_t least) {
  Ints out = n.integers(name).value_or(Ints(count, fallback));
  const bool good = out.size() == count && std::ranges::all_of(out, [&](int64_t v) {
                      return v >= least && v <= kMaxWindow;
                    });
  if (!good)
    n.invalid(
        llvm::formatv("attribute {0} needs {1} entries of at least {2}", name, count, least).str());
  return good ? out : Ints(count, fallback);
}

// One spatial axis of Col2Im. Tap k of window w lies at a pixel if w = (pixel + pad - k * dilation)
// / stride is whole and there is such a window.
struct Col2ImAxis {
  Expr image, block, count;  // extents of the image and of a window; number of windows
  int64_t dilation = 1, stride = 1, pad = 0;
};

// The taps or windows that a pixel reads in `steps` steps. If `tap` is absent, it is the step.
struct Col2ImSteps {
  Expr steps;
  Val tap, window, here;
};

// With more steps than this, a walk is bounded by the number of windows, even if that is symbolic.
constexpr int64_t kManySteps = 64;

// Walks over the taps of a window or, if they are fewer, over the windows that reach a pixel. So
// the work is in proportion to what is read.
class Col2ImWalk {
 public:
  Col2ImWalk(NodeImport& n, Col2ImAxis axis, int64_t rank, int64_t step_axis, int64_t pixel_axis)
      : n_(n), axis_(std::move(axis)), rank_(rank), step_axis_(step_axis) {
    pixel_ = n.add(positions(n, axis_.image, rank, pixel_axis), integer(n, axis_.pad));
  }

  Col2ImSteps steps() const {
    const auto block = as_const(axis_.block);
    if (!block) return over_taps();
    const int64_t last = (*block - 1) * axis_.dilation, reaching = last / axis_.stride + 1;
    const bool counted = as_const(axis_.count) || std::min(*block, reaching) > kManySteps;
    const Expr steps = counted ? n_.simplified(min(axis_.count, Expr(reaching))) : Expr(reaching);
    const auto known = as_const(steps);
    if (known && *known >= *block) return over_taps();
    const Val before = n_.sub(pixel_, integer(n_, last - axis_.stride + 1));
    return over_windows(steps,
                        n_.max(integer(n_, 0), n_.binary(BinaryOp::floor_div, before, stride())));
  }

 private:
  Val stride() const { return integer(n_, axis_.stride); }
  Val dilation() const { return integer(n_, axis_.dilation); }
  Val step(const Expr& steps) const { return positions(n_, steps, rank_, step_axis_); }
  Val both(Val a, Val b) const { return n_.binary(BinaryOp::logical_and, a, b); }
  Val within(Val v, const Expr& extent) const {
    return both(n_.binary(BinaryOp::le, integer(n_, 0), v), n_.less(v, integer(n_, extent)));
  }

  Col2ImSteps over_taps() const {
    const Val from = n_.sub(pixel_, n_.mul(step(axis_.block), dilation()));
    const Val window = n_.binary(BinaryOp::floor_div, from, stride());
    const Val whole = n_.binary(BinaryOp::eq, n_.mul(window, stride()), from);
    return {axis_.block, {}, window, both(whole, within(window, axis_.count))};
  }

  Col2ImSteps over_windows(const Expr& steps, Val first) const {
    const Val window = n_.add(first, step(steps));
    const Val from = n_.sub(pixel_, n_.mul(window, stride()));
    const Val tap = n_.binary(BinaryOp::floor_div, from, dilation());
    const Val whole = n_.binary(BinaryOp::eq, n_.mul(tap, dilation()), from);
    return {steps, tap, window,
            both(whole, both(within(tap, axis_.block), within(window, axis_.count)))};
  }

  NodeImport& n_;
  Col2ImAxis axis_;
  int64_t rank_, step_axis_;
  Val pixel_;
};

}  // namespace

// Each pixel is the sum of the windows that cover it.
void import_col2im(NodeImport& n) {
  const Val x = n.in(0);
  const std::vector<Expr> image = n.dims(n.in(1), "the image's shape");
  const std::vector<Expr> block = n.dims(n.in(2), "the block's shape");
  const size_t spatial = block.size();
  const Ints dilations = list_of(n, "dilations", spatial, 1, 1),
             strides = list_of(n, "strides", spatial, 1, 1),
             pads = list_of(n, "pads", 2 * spatial, 0, 0);
  if (n.failed()) return;
  if (n.dtype(x) == DType::boolean)
    return n.fail("dtype bool", "cast to a number type in front of it");
  Expr taps = 1;
  for (const Expr& k : block) {
    if (const auto fixed = as_const(k); fixed && (*fixed < 1 || *fixed > (int64_t{1} << 20)))
      return n.invalid("a block without elements");
    taps = taps * k;
  }
  taps = n.simplified(taps);
  if (n.rank(x) != 3 || image.size() != spatial || spatial == 0)
    return n.invalid(
        "Col2Im needs an input of rank 3 and as many extents of the image as of the block");
  const Expr channels = n.simplified(
      floor_div(n.dim(x, 1), as_const(taps) ? taps : max(taps, Expr(1))));
  const auto k = static_cast<int64_t>(spatial), rank = 2 + 2 * k;
  Shape parted = {n.dim(x, 0), channels}, shape = parted;
  Ints tap_places, reduced;
  std::vector<Val> taps_read, windows;
  Shape counts;
  Val valid;
  for (size_t i = 0; i < spatial; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const Expr slack = image[i] + Expr(pads[i] + pads[i + spatial] - 1) -
                       (block[i] - Expr(1)) * Expr(dilations[i]);
    counts.push_back(n.simplified(floor_div(slack, Expr(strides[i])) + Expr(1)));
    const Col2ImAxis one{image[i], block[i], counts[i], dilations[i], strides[i], pads[i]};
    const Col2ImSteps walked = Col2ImWalk(n, one, rank, 2 + axis, 2 + k + axis).steps();
    valid = valid.valid() ? n.binary(BinaryOp::logical_and, valid, walked.here) : walked.here;
    parted.push_back(block[i]);
    shape.push_back(walked.steps);
    tap_places.push_back(walked.tap.valid() ? -1 : 2 + axis);
    if (walked.tap.valid()) taps_read.push_back(walked.tap);
    windows.push_back(walked.window);
    reduced.push_back(2 + axis);
  }
  Ints places = {0, 1};
  places.insert(places.end(), tap_places.begin(), tap_places.end());
  places.resize(static_cast<size_t>(rank), -1);
  parted.insert(parted.end(), counts.begin(), counts.end());
  shape.insert(shape.end(), image.begin(), image.end());
  std::vector<Val> tables = std::move(taps_read);
  tables.insert(tables.end(), windows.begin(), windows.end());
  const Val read = take(n, n.reshape(x, std::move(parted)), std::move(places), std::move(tables),
                        std::move(shape));
  n.set(n.reduce(ReduceKind::sum, n.select(valid, read, n.scalar(0, read)), std::move(reduced),
                 false));
}

}  // namespace tw::onnx_import
