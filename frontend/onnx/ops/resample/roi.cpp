// Importers of pooling over regions of interest. RoiAlign is a weighted sum, or a maximum, over
// samples; MaxRoiPool is a maximum over the pixels of a bin. If regions decide the number of
// samples or pixels, only the run knows it.
#include <limits>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

// Tensors here are [regions, channels, rows of a bin, columns of a bin, bins down, bins across]. An
// extent is 1 where values are the same.
constexpr int64_t kRank = 6;
constexpr int64_t kMostBins = 1 << 16;

struct Regions {
  Val x, list;              // [N, C, H, W]; [R, 4 or 5]
  DType type = DType::f32;  // type of coordinates
  double scale = 1;
  Ints bins;  // down, across
  Expr count;

  // A coordinate of all regions, times the scale.
  Val coordinate(NodeImport& n, int64_t column) const {
    const Val v = n.cast(n.reshape(n.slice(list, 1, column, 1), only_axis(kRank, 0, count)), type);
    return n.mul(v, n.scalar(scale, type));
  }
  Val extent(NodeImport& n, int64_t side) const {
    return n.cast(integer(n, n.dim(x, 2 + side)), type);
  }
};

// The largest element as an extent, at least 1.
Expr largest(NodeImport& n, Val v) {
  const Val top = n.reduce(ReduceKind::max, n.reshape(v, {n.dim(v, 0)}), {0}, false);
  const std::vector<Expr> dims = n.dims(
      n.reshape(n.max(integer(n, 1), n.cast(top, DType::i64)), {1}), "the size of the bins");
  return dims.size() == 1 ? dims[0] : Expr(1);
}

// Reads x and the regions, the first two inputs of both operators.
Regions read_regions(NodeImport& n, Ints bins) {
  Regions r;
  r.x = n.in(0);
  r.list = n.in(1);
  r.type = n.dtype(r.x) == DType::f64 ? DType::f64 : DType::f32;
  r.scale = n.real("spatial_scale", 1.0);
  r.bins = std::move(bins);
  r.count = n.dim(r.list, 0);
  return r;
}

bool read_bins(NodeImport& n, const Regions& r) {
  if (!n.failed() && (n.rank(r.x) != 4 || n.rank(r.list) != 2))
    n.invalid("pooling of regions needs an input of rank 4 and a list of regions");
  for (const int64_t b : r.bins)
    if (b < 1 || b > kMostBins)
      n.invalid(llvm::formatv("{0} bins, 1 to {1} are accepted", b, kMostBins).str());
  return !n.failed();
}

// x at [regions, C, rows, columns, bins...]; images[i] is the image of region i.
Val pixels(NodeImport& n, const Regions& r, Val images, Val rows, Val columns, const Expr& down,
           const Expr& across) {
  const Val image = n.reshape(images, only_axis(kRank, 0, r.count));
  return take(n, r.x, {-1, 1, -1, -1}, {image, rows, columns},
              {r.count, n.dim(r.x, 1), down, across, r.bins[0], r.bins[1]});
}

struct Samples {
  // counted: true if the sample belongs to the region; count: its samples, [R, 1...]
  Val position, weight, counted, count;
  Expr taps;  // two for each sample
};

// The samples of one side (0: down, 1: across), each between two pixels.
Samples samples_of(NodeImport& n, const Regions& r, int64_t side, int64_t ratio, bool half_pixel) {
  const auto number = [&](double v) { return n.scalar(v, r.type); };
  const Val offset = number(half_pixel ? 0.5 : 0),
            bins = number(static_cast<double>(r.bins[static_cast<size_t>(side)]));
  const Val start = n.sub(r.coordinate(n, 1 - side), offset),
            end = n.sub(r.coordinate(n, 3 - side), offset);
  Val size = n.sub(end, start);
  if (!half_pixel) size = n.max(number(1), size);
  const Val bin = n.div(size, bins);
  Samples s;
  s.count = ratio > 0 ? number(static_cast<double>(ratio))
                      : n.max(number(0), n.unary(UnaryOp::ceil, bin));
  const Expr most = ratio > 0 ? Expr(ratio) : largest(n, s.count);
  s.taps = n.simplified(most * Expr(2));
  const Val tap = positions(n, s.taps, kRank, 2 + side),
            high = n.binary(BinaryOp::floor_mod, tap, integer(n, 2));
  const Val sample = n.cast(n.binary(BinaryOp::floor_div, tap, integer(n, 2)), r.type);
  const Val which = n.cast(positions(n, r.bins[static_cast<size_t>(side)], kRank, 4 + side),
                           r.type);
  const Val within = n.div(n.mul(n.add(sample, number(0.5)), bin), n.max(number(1), s.count));
  const Val at = n.add(n.add(start, n.mul(which, bin)), within), extent = r.extent(n, side),
            last = n.sub(extent, number(1));
  const Val outside = n.binary(BinaryOp::logical_or, n.less(at, number(-1)), n.less(extent, at));
  const Val clamped = n.min(last, n.max(number(0), at)), low = n.unary(UnaryOp::floor, clamped),
            above = n.sub(clamped, low);
  const Val is_high = n.binary(BinaryOp::eq, high, integer(n, 1));
  s.position = n.add(n.cast(low, DType::i64), high);
  s.weight = n.select(outside, number(0), n.select(is_high, above, n.sub(number(1), above)));
  if (ratio <= 0) s.counted = n.less(sample, s.count);
  return s;
}

}  // namespace

void import_roi_align(NodeImport& n) {
  Regions r = read_regions(n, {n.integer("output_height", 1), n.integer("output_width", 1)});
  const Val images = n.within(n.in(2), 0, n.dim(n.in(0), 0) - Expr(1), "image");
  const std::string mode = n.text("mode", "avg"),
                    coordinates = n.version() < 16
                                      ? "output_half_pixel"
                                      : n.text("coordinate_transformation_mode", "half_pixel");
  const int64_t ratio = n.integer("sampling_ratio", 0);
  if (!read_bins(n, r)) return;
  if (mode != "avg" && mode != "max")
    return n.invalid("attribute mode is '" + mode + "', not avg or max");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return n.invalid("attribute coordinate_transformation_mode is '" + coordinates + "'");
  if (ratio < 0 || ratio > kMostBins)
    return n.invalid("attribute sampling_ratio is negative or huge");
  const bool half_pixel = coordinates == "half_pixel", average = mode == "avg";
  const Samples down = samples_of(n, r, 0, ratio, half_pixel),
                across = samples_of(n, r, 1, ratio, half_pixel);
  if (n.failed()) return;
  Val weight = n.mul(down.weight, across.weight);
  const Val counted = down.counted.valid()
                          ? n.binary(BinaryOp::logical_and, down.counted, across.counted)
                          : Val{};
  if (average && counted.valid()) weight = n.select(counted, weight, n.scalar(0, r.type));
  const Val read = n.cast(
      pixels(n, r, images, down.position, across.position, down.taps, across.taps), r.type);
  Val all = n.mul(read, weight);
  const Shape flat = {r.count, 1, 1, 1};
  Val y;
  if (average) {
    const Val count = n.max(n.scalar(1, r.type), n.mul(down.count, across.count));
    y = n.div(n.reduce(ReduceKind::sum, all, {2, 3}, false),
              n.rank(count) == 0 ? count : n.reshape(count, flat));
  } else {
    if (counted.valid())
      all = n.select(counted, all, n.scalar(-std::numeric_limits<double>::infinity(), r.type));
    y = n.reduce(ReduceKind::max, all, {2, 3}, false);
    if (counted.valid())
      y = n.select(
          n.binary(BinaryOp::eq, y, n.scalar(-std::numeric_limits<double>::infinity(), r.type)),
          n.scalar(0, r.type), y);
  }
  n.set(n.cast(y, n.dtype(r.x)));
}

namespace {

struct Bin {
  Val position, inside;
  Expr most;  // pixels of the largest bin
};

// The pixels from floor(b * size) to ceil((b + 1) * size) of a region, bounded by the image.
Bin bin_of(NodeImport& n, const Regions& r, int64_t side) {
  const auto number = [&](double v) { return n.scalar(v, r.type); };
  const auto rounded = [&](Val v) { return n.unary(UnaryOp::floor, n.add(v, number(0.5))); };
  const Val start = rounded(r.coordinate(n, 2 - side)), end = rounded(r.coordinate(n, 4 - side));
  const Val size = n.div(n.max(number(1), n.add(n.sub(end, start), number(1))),
                         number(static_cast<double>(r.bins[static_cast<size_t>(side)])));
  const Val which = n.cast(positions(n, r.bins[static_cast<size_t>(side)], kRank, 4 + side),
                           r.type),
            extent = r.extent(n, side);
  const auto bounded = [&](Val v) { return n.min(extent, n.max(number(0), n.add(v, start))); };
  const Val from = bounded(n.unary(UnaryOp::floor, n.mul(which, size))),
            to = bounded(n.unary(UnaryOp::ceil, n.mul(n.add(which, number(1)), size)));
  Bin bin;
  const Val longest = n.reduce(ReduceKind::max, n.sub(to, from), {4 + side}, false);
  bin.most = largest(n, n.reshape(longest, {r.count}));
  const Val at = n.add(from, n.cast(positions(n, bin.most, kRank, 2 + side), r.type));
  bin.inside = n.less(at, to);
  bin.position = n.cast(at, DType::i64);
  return bin;
}

}  // namespace

// rois: [R, 5]; the first column is the image. A bin without pixels gives 0.
void import_max_roi_pool(NodeImport& n) {
  Regions r = read_regions(n, n.integers("pooled_shape").value_or(Ints()));
  if (!n.failed() && r.bins.size() != 2)
    return n.invalid("attribute pooled_shape needs two entries");
  if (!read_bins(n, r)) return;
  const Bin down = bin_of(n, r, 0), across = bin_of(n, r, 1);
  if (n.failed()) return;
  const Val images = n.within(n.slice(r.list, 1, 0, 1), 0, n.dim(r.x, 0) - Expr(1), "image"),
            lowest = n.scalar(-std::numeric_limits<double>::infinity(), r.x);
  const Val read = pixels(n, r, images, down.position, across.position, down.most, across.most);
  const Val all = n.select(n.binary(BinaryOp::logical_and, down.inside, across.inside), read,
                           lowest);
  const Val y = n.reduce(ReduceKind::max, all, {2, 3}, false);
  n.set(n.select(n.binary(BinaryOp::eq, y, lowest), n.scalar(0, r.x), y));
}

}  // namespace tw::onnx_import
