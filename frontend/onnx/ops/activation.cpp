// Activation functions as compositions of element-wise core operators, after the formulas of the
// ONNX operator pages.
#include <cmath>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

Val exp(NodeImport& n, Val a) { return n.unary(UnaryOp::exp, a); }

// log(1 + e^x) without overflow: max(x, 0) + log1p(e^-|x|)
Val softplus(NodeImport& n, Val x) {
  const Val tail = exp(n, n.unary(UnaryOp::neg, n.unary(UnaryOp::abs, x)));
  return n.add(n.max(n.scalar(0, x), x), n.unary(UnaryOp::log1p, tail));
}

Val hard_sigmoid(NodeImport& n, Val x, double alpha, double beta) {
  const Val line = n.add(n.mul(x, n.scalar(alpha, x)), n.scalar(beta, x));
  return n.min(n.scalar(1, x), n.max(n.scalar(0, x), line));
}

// x above zero, alpha (e^x - 1) below
Val elu(NodeImport& n, Val x, double alpha) {
  const Val below = n.mul(n.scalar(alpha, x), n.unary(UnaryOp::expm1, x));
  return n.select(n.less(x, n.scalar(0, x)), below, x);
}

}  // namespace

void import_relu(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.max(n.scalar(0, x), x));
}

void import_leaky_relu(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.select(n.less(x, n.scalar(0, x)), n.mul(x, n.scalar(n.real("alpha", 0.01f), x)), x));
}

// Before version 7, a vector of slopes has one for each channel; later, slopes broadcast.
void import_prelu(NodeImport& n) {
  const Val x = n.in(0);
  Val slope = n.in(1);
  if (n.version() < 7 && n.rank(slope) == 1 && n.rank(x) > 2) {
    Shape shape(static_cast<size_t>(n.rank(x)) - 1, Expr(1));
    shape[0] = n.dim(slope, 0);
    slope = n.reshape(slope, std::move(shape));
  }
  n.set(n.select(n.less(x, n.scalar(0, x)), n.mul(x, slope), x));
}

void import_elu(NodeImport& n) { n.set(elu(n, n.in(0), n.real("alpha", 1.0))); }

void import_selu(NodeImport& n) {
  const Val x = n.in(0);
  const double alpha = n.real("alpha", 1.67326319217681884765625),
               gamma = n.real("gamma", 1.05070102214813232421875);
  n.set(n.mul(n.scalar(gamma, x), elu(n, x, alpha)));
}

void import_celu(NodeImport& n) {
  const Val x = n.in(0), zero = n.scalar(0, x);
  const double alpha = n.real("alpha", 1.0);
  const Val below = n.mul(n.scalar(alpha, x),
                          n.unary(UnaryOp::expm1, n.div(x, n.scalar(alpha, x))));
  n.set(n.add(n.max(zero, x), n.min(zero, below)));
}

void import_hard_sigmoid(NodeImport& n) {
  n.set(hard_sigmoid(n, n.in(0), n.real("alpha", 0.2f), n.real("beta", 0.5)));
}

void import_hard_swish(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.mul(x, hard_sigmoid(n, x, 1.0 / 6.0, 0.5)));
}

void import_swish(NodeImport& n) {
  const Val x = n.in(0);
  const double alpha = n.real("alpha", 1.0);
  n.set(n.mul(x, n.unary(UnaryOp::sigmoid, alpha == 1.0 ? x : n.mul(x, n.scalar(alpha, x)))));
}

// Swish of input 0, times input 1.
void import_swiglu(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1);
  const double alpha = n.real("alpha", 1.0);
  n.set(n.mul(n.mul(a, n.unary(UnaryOp::sigmoid, alpha == 1.0 ? a : n.mul(a, n.scalar(alpha, a)))),
              b));
}

// x tanh(log(1 + e^x)) = x a / (a + 2) with a = e^x (e^x + 2). Beyond 20, in f16 beyond 5, the
// quotient rounds to 1.
void import_mish(NodeImport& n) {
  const Val x = n.in(0);
  const Val power = exp(n, n.min(n.scalar(n.dtype(x) == DType::f16 ? 5 : 20, x), x)),
            two = n.scalar(2, x);
  const Val a = n.mul(power, n.add(power, two));
  n.set(n.mul(x, n.div(a, n.add(a, two))));
}

void import_softplus(NodeImport& n) { n.set(softplus(n, n.in(0))); }

void import_softsign(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.div(x, n.add(n.scalar(1, x), n.unary(UnaryOp::abs, x))));
}

void import_thresholded_relu(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.select(n.less(n.scalar(n.real("alpha", 1.0), x), x), x, n.scalar(0, x)));
}

// Integers are computed as f64, since the attributes are floats, and then truncated.
void import_shrink(NodeImport& n) {
  const DType type = n.dtype(n.in(0));
  const Val x = is_float(type) ? n.in(0) : n.cast(n.in(0), DType::f64);
  const double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0.0);
  const Val above = n.select(n.less(n.scalar(lambda, x), x), n.sub(x, n.scalar(bias, x)),
                             n.scalar(0, x));
  const Val below = n.less(x, n.scalar(-lambda, x));
  n.set(n.cast(n.select(below, n.add(x, n.scalar(bias, x)), above), type));
}

// 0.5 x (1 + erf(x / sqrt(2))), or approximately 0.5 x (1 + tanh(u)) with u = sqrt(2 / pi) (x +
// 0.044715 x^3). The functions used here do not cancel near 0.
Val gelu(NodeImport& n, Val x, bool approximate) {
  if (!approximate) return n.mul(x, n.unary(UnaryOp::normal_cdf, x));
  const double slope = 2 * std::sqrt(2.0 / M_PI);
  const Val twice = n.mul(
      x, n.add(n.scalar(slope, x), n.mul(n.scalar(0.044715 * slope, x), n.mul(x, x))));
  return n.mul(x, n.unary(UnaryOp::sigmoid, twice));
}

void import_gelu(NodeImport& n) {
  const Val x = n.in(0);
  const std::string approximate = n.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return n.fail("attribute approximate=" + approximate, "use none or tanh");
  n.set(gelu(n, x, approximate == "tanh"));
}

namespace {

// The input as a matrix, for versions before 13: axes before attribute `axis` are rows, the others
// columns.
Val as_matrix(NodeImport& n, Val x) {
  int64_t axis = n.integer("axis", 1);
  if (axis < 0) axis += n.rank(x);
  if (!n.failed() && (axis < 0 || axis > n.rank(x)))
    n.invalid(llvm::formatv("axis {0} is out of range for rank {1}", axis, n.rank(x)).str());
  Expr rows = 1, columns = 1;
  for (int64_t i = 0; i < n.rank(x); ++i)
    (i < axis ? rows : columns) = (i < axis ? rows : columns) * n.dim(x, i);
  return n.reshape(x, {rows, columns});
}

}  // namespace

void import_softmax(NodeImport& n, bool log) {
  const Val x = n.in(0);
  if (n.version() >= 13)
    return n.set(n.emit(op::Softmax{n.axis(n.integer("axis", -1), n.rank(x)), log}, {x}));
  n.set(n.reshape(n.emit(op::Softmax{1, log}, {as_matrix(n, x)}), n.shape(x)));
}

// 1 at the first of the largest elements, 0 elsewhere
void import_hardmax(NodeImport& n) {
  const Val x = n.in(0);
  const bool matrix = n.version() < 13;
  const Val data = matrix ? as_matrix(n, x) : x;
  const int64_t axis = matrix ? 1 : n.axis(n.integer("axis", -1), n.rank(x));
  if (n.failed()) return;
  const Val index = n.emit(op::ArgReduce{false, axis, true, false}, {data});
  const Val hit = n.binary(BinaryOp::eq, index,
                           positions(n, n.dim(data, axis), n.rank(data), axis));
  n.set(n.reshape(n.cast(hit, n.dtype(x)), n.shape(x)));
}

}  // namespace tw::onnx_import
