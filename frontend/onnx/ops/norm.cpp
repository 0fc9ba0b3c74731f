// Normalizations.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// (x - mean) / sqrt(variance + epsilon) over the axes
Val standardized(NodeImport& n, Val x, const Ints& axes, double epsilon) {
  const Val centered = n.sub(x, n.reduce(ReduceKind::mean, x, axes, true));
  const Val variance = n.reduce(ReduceKind::mean, n.mul(centered, centered), axes, true);
  return n.div(centered, n.unary(UnaryOp::sqrt, n.add(variance, n.scalar(epsilon, x))));
}

// [C] to [C, 1, 1...] so that it broadcasts over the axes after the channels
Val per_channel(NodeImport& n, Val v, int64_t rank) {
  Shape shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), Expr(1));
  shape[0] = n.dim(v, 0);
  return n.reshape(v, std::move(shape));
}

}  // namespace

void import_batch_norm(NodeImport& n, int) {
  if (n.integer("training_mode", 0) != 0) return n.fail("attribute training_mode=1", "export the model in inference mode");
  if (n.integer("spatial", 1) != 1) return n.fail("attribute spatial=0", "export at opset 9 or newer");
  const Val x = n.in(0);
  std::vector<Val> inputs = {x};
  for (size_t i = 1; i <= 4; ++i) inputs.push_back(n.cast(n.in(i), n.dtype(x)));
  n.set(n.emit(op::BatchNorm{n.real("epsilon", 1e-5f)}, std::move(inputs)));
}

// Outputs 1 and 2 are the mean and 1 / sqrt(variance + epsilon).
void import_layer_norm(NodeImport& n, int) {
  const Val x = n.in(0), scale = n.in(1);
  const int64_t axis = n.axis(n.integer("axis", -1), n.rank(x));
  const double epsilon = n.real("epsilon", 1e-5f);
  if (n.failed()) return;
  const Shape tail(n.shape(x).begin() + axis, n.shape(x).end());
  std::vector<Val> inputs = {x, n.expand(scale, tail)};
  if (n.has(2)) inputs.push_back(n.expand(n.in(2), tail));
  n.set(n.emit(op::LayerNorm{axis, epsilon}, std::move(inputs)));
  if (!n.wanted(1) && !n.wanted(2)) return;
  Ints axes;
  for (int64_t i = axis; i < n.rank(x); ++i) axes.push_back(i);
  const Val mean = n.reduce(ReduceKind::mean, x, axes, true), centered = n.sub(x, mean);
  const Val variance = n.reduce(ReduceKind::mean, n.mul(centered, centered), axes, true);
  n.set(1, mean);
  n.set(2, n.unary(UnaryOp::rsqrt, n.add(variance, n.scalar(epsilon, x))));
}

void import_instance_norm(NodeImport& n, int) {
  const Val x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (!n.failed() && n.rank(x) < 3) return n.invalid("InstanceNormalization needs spatial axes");
  Ints axes;
  for (int64_t i = 2; i < n.rank(x); ++i) axes.push_back(i);
  const Val y = standardized(n, x, axes, n.real("epsilon", 1e-5f));
  n.set(n.add(n.mul(y, per_channel(n, scale, n.rank(x))), per_channel(n, bias, n.rank(x))));
}

// Channels in groups; scale and bias are one a group at version 18 and one a channel since 21.
void import_group_norm(NodeImport& n, int) {
  const Val x = n.in(0), scale = n.in(1), bias = n.in(2);
  const int64_t groups = n.integer("num_groups", 0), rank = n.rank(x);
  if (n.failed()) return;
  if (rank < 2 || n.rank(scale) != 1 || n.rank(bias) != 1) return n.invalid("GroupNormalization with inputs of wrong rank");
  const int64_t channels = n.need_static_dim(x, 1, "GroupNormalization");
  if (groups < 1 || channels % groups != 0) return n.invalid(llvm::formatv("{0} channels in {1} groups", channels, groups).str());
  Expr spatial = 1;
  for (int64_t i = 2; i < rank; ++i) spatial = spatial * n.dim(x, i);
  const Val grouped = n.reshape(x, {n.dim(x, 0), groups, Expr(channels / groups) * spatial});
  Val y = standardized(n, grouped, {2}, n.real("epsilon", 1e-5f));
  if (n.version() < 21) y = n.add(n.mul(y, n.reshape(scale, {groups, 1})), n.reshape(bias, {groups, 1}));
  y = n.reshape(y, n.shape(x));
  if (n.version() >= 21) y = n.add(n.mul(y, per_channel(n, scale, rank)), per_channel(n, bias, rank));
  n.set(y);
}

// x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta
void import_lrn(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t size = n.integer("size", 1), rank = n.rank(x);
  const double alpha = n.real("alpha", 1e-4f), beta = n.real("beta", 0.75), bias = n.real("bias", 1.0);
  if (n.failed()) return;
  if (rank < 2 || size < 1 || size > (int64_t{1} << 31)) return n.invalid("LRN needs a channel axis and a positive size");
  Expr spatial = 1;
  for (int64_t i = 2; i < rank; ++i) spatial = spatial * n.dim(x, i);
  const Val squares = n.reshape(n.mul(x, x), {n.dim(x, 0), 1, n.dim(x, 1), spatial});
  op::Pool pool{PoolKind::average, {size, 1}, {1, 1}, {1, 1}, {(size - 1) / 2, 0, size / 2, 0}, false, true};
  const Val mean = n.reshape(n.emit(std::move(pool), {squares}), n.shape(x));
  const Val base = n.add(n.scalar(bias, x), n.mul(n.scalar(alpha, x), mean));
  n.set(n.div(x, n.binary(BinaryOp::pow, base, n.scalar(beta, x))));
}

void import_lp_normalization(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t p = n.integer("p", 2), axis = n.axis(n.integer("axis", -1), n.rank(x));
  if (p != 1 && p != 2) return n.invalid("attribute p must be 1 or 2");
  const Val size = p == 1 ? n.reduce(ReduceKind::sum, n.unary(UnaryOp::abs, x), {axis}, true)
                          : n.unary(UnaryOp::sqrt, n.reduce(ReduceKind::sum, n.mul(x, x), {axis}, true));
  const Val zero = n.scalar(0, x);
  n.set(n.select(n.binary(BinaryOp::eq, size, zero), zero, n.div(x, size)));
}

}  // namespace tw::onnx_import
