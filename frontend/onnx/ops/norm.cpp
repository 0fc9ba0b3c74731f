// Importers of normalizations.
#include <algorithm>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

// Statistics of 16-bit floats are computed in f32.
DType stash(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

// (x - mean) / sqrt(variance + epsilon) over the axes
Val standardized(NodeImport& n, Val short_x, const Ints& axes, double epsilon) {
  const DType type = n.dtype(short_x);
  const Val x = n.cast(short_x, stash(type));
  const Val centered = n.sub(x, n.reduce(ReduceKind::mean, x, axes, true));
  const Val variance = n.reduce(ReduceKind::mean, n.mul(centered, centered), axes, true);
  return n.cast(n.div(centered, n.unary(UnaryOp::sqrt, n.add(variance, n.scalar(epsilon, x)))),
                type);
}

// [C] to [C, 1, 1...] so that it broadcasts over the axes after the channels
Val per_channel(NodeImport& n, Val v, int64_t rank) {
  Shape shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), Expr(1));
  shape[0] = n.dim(v, 0);
  return n.reshape(v, std::move(shape));
}

}  // namespace

namespace {

Ints axes_without(int64_t rank, int64_t axis) {
  Ints axes = all_axes(rank);
  axes.erase(axes.begin() + axis);
  return axes;
}

// Normalizes by the statistics of this batch, and moves the running ones towards them: outputs 1
// and 2. Before version 14, outputs 3 and 4 are the batch's own.
void batch_norm_in_training(NodeImport& n, Val x, const Shape& shape, double epsilon) {
  const int64_t rank = n.rank(x);
  const double momentum = n.real("momentum", 0.9f);
  const DType wide = n.dtype(x) == DType::f64 ? DType::f64 : DType::f32;
  const Val data = n.cast(x, wide),
            mean = n.reduce(ReduceKind::mean, data, axes_without(rank, 1), true),
            centered = n.sub(data, mean);
  const Val variance = n.reduce(ReduceKind::mean, n.mul(centered, centered), axes_without(rank, 1),
                                true);
  const auto parameter = [&](size_t i) { return per_channel(n, n.cast(n.in(i), wide), rank); };
  const Val y = n.div(centered, n.unary(UnaryOp::sqrt, n.add(variance, n.scalar(epsilon, wide))));
  n.set(n.reshape(n.cast(n.add(n.mul(y, parameter(1)), parameter(2)), n.dtype(x)), shape));
  const auto flat = [&](Val v) { return n.reshape(v, {n.dim(x, 1)}); };
  for (size_t i = 0; i < 2; ++i) {
    const Val running = n.in(3 + i),
              batch = n.cast(flat(i == 0 ? mean : variance), n.dtype(running));
    const Val moved = n.add(n.mul(running, n.scalar(momentum, running)),
                            n.mul(batch, n.scalar(1 - momentum, running)));
    n.set(1 + i, moved);
    if (n.version() < 14) n.set(3 + i, batch);
  }
}

// Version 7 with spatial = 0 has parameters for each element of a sample.
void batch_norm_by_element(NodeImport& n, Val x, double epsilon) {
  const Val deviation = n.unary(UnaryOp::sqrt, n.add(n.in(4), n.scalar(epsilon, x)));
  n.set(n.add(n.mul(n.div(n.sub(x, n.in(3)), deviation), n.in(1)), n.in(2)));
}

}  // namespace

// Before version 14, any output besides y means training.
void import_batch_norm(NodeImport& n) {
  Val x = n.in(0);
  const double epsilon = n.real("epsilon", 1e-5f);
  const Shape shape = n.shape(x);
  if (n.failed()) return;
  if (shape.empty()) return n.invalid("BatchNormalization of a scalar");
  if (n.integer("spatial", 1) != 1) return batch_norm_by_element(n, x, epsilon);
  if (shape.size() == 1) x = n.reshape(x, {shape[0], 1});  // one channel
  const bool old = n.version() < 14;
  if (old ? n.wanted(1) || n.wanted(2) || n.wanted(3) || n.wanted(4)
          : n.integer("training_mode", 0) != 0)
    return batch_norm_in_training(n, x, shape, epsilon);
  const DType own = n.dtype(x);
  DType type = own;  // computation: the widest type of x and parameters
  for (size_t i = 1; i <= 4; ++i)
    if (const DType given = n.dtype(n.in(i)); dtype_bytes(given) > dtype_bytes(type)) type = given;
  std::vector<Val> inputs = {n.cast(x, type)};
  for (size_t i = 1; i <= 4; ++i) inputs.push_back(n.cast(n.in(i), type));
  n.set(n.reshape(n.cast(n.emit(op::BatchNorm{epsilon}, std::move(inputs)), own), shape));
}

// (x - mean) / (deviation + 1e-9) over the axes
void import_mean_variance_norm(NodeImport& n) {
  const Val x = n.in(0);
  const Ints axes = n.axes(n.integers("axes").value_or(Ints{0, 2, 3}), n.rank(x));
  const Val centered = n.sub(x, n.reduce(ReduceKind::mean, x, axes, true));
  const Val deviation = n.unary(UnaryOp::sqrt,
                                n.reduce(ReduceKind::mean, n.mul(centered, centered), axes, true));
  n.set(n.div(centered, n.add(deviation, n.scalar(1e-9, x))));
}

void layer_norm(NodeImport& n, Val x, Val scale, Val bias, int64_t axis, double epsilon,
                bool centred) {
  if (n.failed()) return;
  const DType own = n.dtype(x), given = n.dtype(scale),
              wide = own == DType::f64 || given == DType::f64 ? DType::f64 : DType::f32;
  const DType type = own == given ? own : wide;  // type of the computation
  const Val data = n.cast(x, type);
  const Shape tail(n.shape(x).begin() + axis, n.shape(x).end());
  std::vector<Val> inputs = {data, n.expand(n.cast(scale, type), tail)};
  if (bias.valid()) inputs.push_back(n.expand(n.cast(bias, type), tail));
  n.set(n.cast(n.emit(op::LayerNorm{axis, epsilon, centred}, std::move(inputs)), given));
  if (!n.wanted(1) && !n.wanted(2)) return;
  Ints axes;
  for (int64_t i = axis; i < n.rank(x); ++i) axes.push_back(i);
  const Val exact = n.cast(x, wide), mean = n.reduce(ReduceKind::mean, exact, axes, true),
            middle = centred ? n.sub(exact, mean) : exact;
  const Val variance = n.reduce(ReduceKind::mean, n.mul(middle, middle), axes, true);
  const DType stash =
      dtype_from_onnx(static_cast<int>(std::clamp<int64_t>(n.integer("stash_type", 1), 0, 1000)))
          .value_or(DType::f32);
  const Val inverse = n.cast(n.unary(UnaryOp::rsqrt, n.add(variance, n.scalar(epsilon, exact))),
                             stash);
  n.set(1, centred ? n.cast(mean, stash) : inverse);
  n.set(2, inverse);
}

// Outputs 1 and 2 are the mean and 1 / sqrt(variance + epsilon).
void import_layer_norm(NodeImport& n) {
  const Val x = n.in(0), scale = n.in(1);
  const int64_t axis = n.axis(n.integer("axis", -1), n.rank(x));
  layer_norm(n, x, scale, n.maybe(2), axis, n.real("epsilon", 1e-5f), true);
}

// x / sqrt(mean(x * x) + epsilon) * scale. SimplifiedLayerNormalization has the divisor's inverse
// as output 1.
void import_rms_norm(NodeImport& n) {
  const Val x = n.in(0), scale = n.in(1);
  const int64_t axis = n.axis(n.integer("axis", -1), n.rank(x));
  layer_norm(n, x, scale, {}, axis, n.real("epsilon", 1e-5f), false);
}

void import_instance_norm(NodeImport& n) {
  const Val x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (!n.failed() && n.rank(x) < 3) return n.invalid("InstanceNormalization needs spatial axes");
  Ints axes;
  for (int64_t i = 2; i < n.rank(x); ++i) axes.push_back(i);
  const DType wide = stash(n.dtype(x));
  const Val y = standardized(n, n.cast(x, wide), axes, n.real("epsilon", 1e-5f));
  n.set(n.cast(n.add(n.mul(y, n.cast(per_channel(n, scale, n.rank(x)), wide)),
                     n.cast(per_channel(n, bias, n.rank(x)), wide)),
               n.dtype(x)));
}

// scale and bias have one entry for each group at version 18, and one for each channel since
// version 21.
void import_group_norm(NodeImport& n) {
  const DType type = n.dtype(n.in(0)), wide = stash(type);
  const Val x = n.cast(n.in(0), wide), scale = n.cast(n.in(1), wide), bias = n.cast(n.in(2), wide);
  const int64_t groups = n.integer("num_groups", 0), rank = n.rank(x);
  if (n.failed()) return;
  if (rank < 2 || n.rank(scale) != 1 || n.rank(bias) != 1)
    return n.invalid("GroupNormalization with inputs of wrong rank");
  const int64_t channels = n.need_static_dim(x, 1, "GroupNormalization");
  if (groups < 1 || channels % groups != 0)
    return n.invalid(llvm::formatv("{0} channels in {1} groups", channels, groups).str());
  Expr spatial = 1;
  for (int64_t i = 2; i < rank; ++i) spatial = spatial * n.dim(x, i);
  const Val grouped = n.reshape(x, {n.dim(x, 0), groups, Expr(channels / groups) * spatial});
  Val y = standardized(n, grouped, {2}, n.real("epsilon", 1e-5f));
  if (n.version() < 21)
    y = n.add(n.mul(y, n.reshape(scale, {groups, 1})), n.reshape(bias, {groups, 1}));
  y = n.reshape(y, n.shape(x));
  if (n.version() >= 21)
    y = n.add(n.mul(y, per_channel(n, scale, rank)), per_channel(n, bias, rank));
  n.set(n.cast(y, type));
}

// x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta
void import_lrn(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t size = n.integer("size", 1), rank = n.rank(x);
  const double alpha = n.real("alpha", 1e-4f), beta = n.real("beta", 0.75),
               bias = n.real("bias", 1.0);
  if (n.failed()) return;
  if (rank < 2 || size < 1 || size > (int64_t{1} << 31))
    return n.invalid("LRN needs a channel axis and a positive size");
  Expr spatial = 1;
  for (int64_t i = 2; i < rank; ++i) spatial = spatial * n.dim(x, i);
  const Val squares = n.reshape(n.mul(x, x), {n.dim(x, 0), 1, n.dim(x, 1), spatial});
  op::Pool pool{PoolKind::sum, {size, 1}, {1, 1}, {1, 1}, {(size - 1) / 2, 0, size / 2, 0},
                false,         false};
  const Val sum = n.reshape(n.emit(std::move(pool), {squares}), n.shape(x));
  const Val base = n.add(n.scalar(bias, x),
                         n.mul(n.scalar(alpha / static_cast<double>(size), x), sum));
  n.set(n.div(x, n.binary(BinaryOp::pow, base, n.scalar(beta, x))));
}

void import_lp_normalization(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t p = n.integer("p", 2), axis = n.axis(n.integer("axis", -1), n.rank(x));
  if (p != 1 && p != 2) return n.invalid("attribute p must be 1 or 2");
  const Val size = p == 1 ? n.reduce(ReduceKind::sum, n.unary(UnaryOp::abs, x), {axis}, true)
                          : n.unary(UnaryOp::sqrt,
                                    n.reduce(ReduceKind::sum, n.mul(x, x), {axis}, true));
  const Val zero = n.scalar(0, x);
  n.set(n.select(n.binary(BinaryOp::eq, size, zero), zero, n.div(x, size)));
}

}  // namespace tw::onnx_import
