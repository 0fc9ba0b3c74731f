// Pooling.
#include <cmath>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxKernel = int64_t{1} << 31;

op::Pool read_pool(NodeImport& n, Val x, PoolKind kind) {
  op::Pool pool;
  pool.kind = kind;
  pool.kernel = n.integers("kernel_shape").value_or(Ints());
  if (!n.failed() && (pool.kernel.empty() || static_cast<int64_t>(pool.kernel.size()) != n.rank(x) - 2))
    n.invalid(llvm::formatv("kernel_shape has {0} entries for an input of rank {1}", pool.kernel.size(), n.rank(x)).str());
  for (int64_t extent : pool.kernel)
    if (extent < 1 || extent > kMaxKernel) n.invalid("a kernel without elements");
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

Val power(NodeImport& n, Val x, double p) { return p == 1 ? x : n.binary(BinaryOp::pow, x, n.scalar(p, x)); }

}  // namespace

void import_max_pool(NodeImport& n, int) {
  const Val x = n.in(0);
  n.set(n.emit(read_pool(n, x, PoolKind::max), {x}));
}

void import_average_pool(NodeImport& n, int) {
  const Val x = n.in(0);
  n.set(n.emit(read_pool(n, x, PoolKind::average), {x}));
}

void import_global_pool(NodeImport& n, int kind) {
  const Val x = n.in(0);
  n.set(n.reduce(static_cast<ReduceKind>(kind), x, spatial_axes(n, x), true));
}

// (sum |x|^p)^(1/p): an average times the window's size
void import_lp_pool(NodeImport& n, int) {
  const Val x = n.in(0);
  const double p = static_cast<double>(n.integer("p", 2));
  op::Pool pool = read_pool(n, x, PoolKind::average);
  if (pool.ceil_mode) return n.fail("attribute ceil_mode=1", "use ceil_mode=0 with explicit pads");
  pool.count_include_pad = true;
  double window = 1;
  for (int64_t extent : pool.kernel) window *= static_cast<double>(extent);
  const Val mean = n.emit(std::move(pool), {power(n, n.unary(UnaryOp::abs, x), p)});
  n.set(power(n, n.mul(mean, n.scalar(window, x)), 1 / p));
}

void import_global_lp_pool(NodeImport& n, int) {
  const Val x = n.in(0);
  const double p = static_cast<double>(n.integer("p", 2));
  const Val sum = n.reduce(ReduceKind::sum, power(n, n.unary(UnaryOp::abs, x), p), spatial_axes(n, x), true);
  n.set(power(n, sum, 1 / p));
}

}  // namespace tw::onnx_import
