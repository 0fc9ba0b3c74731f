// Complex numbers are pairs along the last axis, so a transform is a product with one real matrix
// over (point, part). Long lengths are cut into factors (Cooley and Tukey). Lengths with a large
// prime become a convolution whose length is a power of two (Bluestein).
#include "frontend/onnx/ops/signal/dft.h"

#include <cmath>
#include <complex>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {

Val steps(NodeImport& n, const Expr& count) {
  const auto known = as_const(count);
  if (!known || *known > kFoldElements) return n.cast(positions(n, count, 1, 0), DType::f64);
  std::vector<double> values;
  for (int64_t i = 0; i < *known; ++i) values.push_back(static_cast<double>(i));
  return table(n, values, {*known}, DType::f64);
}

namespace {

constexpr int64_t kDirect = 128, kLargestPrime = 256, kMostPoints = int64_t{1} << 24;

std::complex<double> root_of_unity(int64_t step, int64_t of,
                                   bool inverse) {  // exp(-2 pi i step / of)
  const double angle = 2 * M_PI * static_cast<double>(step % of) / static_cast<double>(of);
  return {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
}

int64_t largest_prime(int64_t length) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= length; ++p)
    for (; length % p == 0; length /= p) largest = p;
  return std::max(largest, length);
}

// The largest divisor up to 64, else the smallest prime.
int64_t radix(int64_t length) {
  for (int64_t d = 64; d > 1; --d)
    if (length % d == 0) return d;
  int64_t p = 67;
  while (length % p != 0) ++p;
  return p;
}

// Transforms of known length: x is [rows, length, parts].
class StaticDft {
 public:
  StaticDft(NodeImport& n, DType type, bool inverse) : n_(n), type_(type), inverse_(inverse) {}

  // Points [0, out) of the transform, as one product. x has the first points of the signal; the
  // rest are 0.
  Val direct(Val x, int64_t length, int64_t out) {
    const int64_t in = extent(x, 1), parts = extent(x, 2);
    std::vector<double> matrix;
    for (int64_t row = 0; row < in; ++row)
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t k = 0; k < out; ++k) {
          const std::complex<double> w = root_of_unity(row * k, length, inverse_);
          matrix.push_back(part == 0 ? w.real() : -w.imag());
          matrix.push_back(part == 0 ? w.imag() : w.real());
        }
    return n_.reshape(product(x, matrix, in * parts, out * 2), {n_.dim(x, 0), out, 2});
  }

  // The real signal of half a spectrum, as one product.
  Val direct_real(Val x, int64_t length) {
    const int64_t in = extent(x, 1);
    std::vector<double> matrix;
    for (int64_t k = 0; k < in; ++k)
      for (int64_t part = 0; part < 2; ++part)
        for (int64_t t = 0; t < length; ++t) {
          const std::complex<double> w = root_of_unity(t * k, length, true);
          matrix.push_back((part == 0 ? w.real() : -w.imag()) *
                           (k == 0 || 2 * k == length ? 1 : 2) / static_cast<double>(length));
        }
    return n_.reshape(product(x, matrix, in * 2, length), {n_.dim(x, 0), length, 1});
  }

  // A whole complex transform, not scaled: [rows, length, 2].
  Val whole(Val x, int64_t length) {
    if (n_.failed()) return {};
    if (length <= kDirect || (length <= kLargestPrime && largest_prime(length) == length))
      return direct(x, length, length);
    if (largest_prime(length) > kLargestPrime) return convolved(x, length);
    const int64_t first = radix(length), second = length / first;
    const Expr rows = n_.dim(x, 0);
    // Point second * a + b becomes point c + first * d: transforms over a, twiddles for b * c,
    // transforms over b.
    Val y = n_.reshape(n_.transpose(n_.reshape(x, {rows, first, second, 2}), {0, 2, 1, 3}),
                       {rows * Expr(second), first, 2});
    y = n_.reshape(direct(y, first, first), {rows, second, first, 2});
    std::vector<std::complex<double>> twiddles;
    for (int64_t b = 0; b < second; ++b)
      for (int64_t c = 0; c < first; ++c)
        twiddles.push_back(root_of_unity(b * c, length, inverse_));
    y = times(y, twiddles, {second, first, 2});
    y = n_.reshape(n_.transpose(y, {0, 2, 1, 3}), {rows * Expr(first), second, 2});
    y = n_.reshape(whole(y, second), {rows, first, second, 2});
    return n_.reshape(n_.transpose(y, {0, 2, 1, 3}), {rows, length, 2});
  }

  // x with `length` points, cut or filled up with zeros, and with two parts if `complex`.
  Val fitted(Val x, int64_t length, bool complex) {
    if (extent(x, 1) > length) x = n_.slice(x, 1, 0, length);
    const int64_t missing = length - extent(x, 1), parts = complex ? 2 - extent(x, 2) : 0;
    if (missing <= 0 && parts <= 0) return x;
    return n_.emit(op::Pad{PadMode::constant, {0, 0, 0}, {0, std::max<int64_t>(missing, 0), parts}},
                   {x});
  }

 private:
  int64_t extent(Val v, int64_t axis) { return n_.need_static_dim(v, axis, "a transform"); }

  Val product(Val x, const std::vector<double>& matrix, int64_t depth, int64_t columns) {
    if (n_.failed()) return {};
    return n_.emit(op::MatMul{}, {n_.reshape(x, {n_.dim(x, 0), depth}),
                                  table(n_, matrix, {depth, columns}, type_)});
  }

  // The complex product with constants that broadcast: a * re + (a with its parts swapped) * (-im,
  // im)
  Val times(Val a, const std::vector<std::complex<double>>& factors,
            const std::vector<int64_t>& shape) {
    if (n_.failed()) return {};
    std::vector<double> same, changed;
    for (const std::complex<double>& f : factors) {
      same.insert(same.end(), {f.real(), f.real()});
      changed.insert(changed.end(), {-f.imag(), f.imag()});
    }
    op::Slice flip;
    for (int64_t i = 0; i < n_.rank(a); ++i) {
      const bool parts = i + 1 == n_.rank(a);
      flip.starts.emplace_back(parts ? 1 : 0);
      flip.steps.push_back(parts ? -1 : 1);
      flip.sizes.push_back(n_.dim(a, i));
    }
    const Val swapped = n_.emit(std::move(flip), {a});
    return n_.add(n_.mul(a, table(n_, same, shape, type_)),
                  n_.mul(swapped, table(n_, changed, shape, type_)));
  }

  // y[k] = w[k] * sum of (x w)[t] conj(w)[k - t] with w[t] = exp(-pi i t^2 / length)
  Val convolved(Val x, int64_t length) {
    int64_t padded = 1;
    while (padded < 2 * length - 1) padded *= 2;
    std::vector<std::complex<double>> chirp, filter(static_cast<size_t>(padded));
    for (int64_t t = 0; t < length; ++t) {
      chirp.push_back(root_of_unity(t * t % (2 * length), 2 * length, inverse_));
      filter[static_cast<size_t>(t)] = filter[static_cast<size_t>((padded - t) % padded)] =
          std::conj(chirp.back());
    }
    transform(filter);
    for (std::complex<double>& f : filter) f /= static_cast<double>(padded);
    StaticDft forward(n_, type_, false), backward(n_, type_, true);
    Val y = forward.whole(fitted(times(x, chirp, {length, 2}), padded, true), padded);
    y = backward.whole(times(y, filter, {padded, 2}), padded);
    return times(n_.slice(y, 1, 0, length), chirp, {length, 2});
  }

  // Transforms in place; the length must be a power of two.
  static void transform(std::vector<std::complex<double>>& x) {
    const size_t size = x.size();
    if (size < 2) return;
    std::vector<std::complex<double>> even, odd;
    for (size_t i = 0; i < size; ++i) (i % 2 == 0 ? even : odd).push_back(x[i]);
    transform(even);
    transform(odd);
    for (size_t k = 0; k < size / 2; ++k) {
      const std::complex<double> turned =
          root_of_unity(static_cast<int64_t>(k), static_cast<int64_t>(size), false) * odd[k];
      x[k] = even[k] + turned;
      x[k + size / 2] = even[k] - turned;
    }
  }

  NodeImport& n_;
  DType type_;
  bool inverse_;
};

Val scaled(NodeImport& n, Val x, int64_t length) {
  return n.div(x, n.scalar(static_cast<double>(length), x));
}

// Half a spectrum, followed by its conjugated mirror image.
Val mirrored(NodeImport& n, Val half, int64_t length) {
  const int64_t count = (length - 1) / 2;
  if (count == 0) return half;
  const op::Slice back{{0, count, 0}, {1, -1, 1}, {n.dim(half, 0), count, 2}};
  const Val tail = n.mul(n.emit(back, {half}), table(n, {1, -1}, {2}, n.dtype(half)));
  return n.emit(op::Concat{1}, {half, tail});
}

// x is [rows, points, parts]; points and parts are known.
Val known_length(NodeImport& n, Val x, int64_t length, const DftPlan& plan) {
  StaticDft transform(n, n.dtype(x), plan.inverse);
  const int64_t half = length / 2 + 1;
  const bool direct = length <= kDirect;
  if (plan.inverse && plan.onesided) {
    const Val spectrum = transform.fitted(x, half, true);
    if (direct) return transform.direct_real(spectrum, length);
    return n.slice(scaled(n, transform.whole(mirrored(n, spectrum, length), length), length), 2, 0,
                   1);
  }
  const int64_t out = plan.onesided ? half : length;
  Val y;
  if (direct) {
    const bool cut = n.static_dim(x, 1).value_or(0) > length;
    y = transform.direct(cut ? n.slice(x, 1, 0, length) : x, length, out);
  } else {
    y = transform.whole(transform.fitted(x, length, true), length);
    if (out != length) y = n.slice(y, 1, 0, out);
  }
  return plan.inverse ? scaled(n, y, length) : y;
}

// Transforms a length that only the run knows, by matrices made in the run, for real and imaginary
// parts apart. x is [rows, points, parts].
Val open_length(NodeImport& n, Val x, const DftPlan& plan) {
  const DType type = n.dtype(x);
  const bool real_out = plan.inverse && plan.onesided;
  const Expr half = n.simplified(floor_div(plan.length, Expr(2)) + Expr(1)),
             limit = real_out ? half : plan.length;
  const Expr in = n.simplified(min(n.dim(x, 1), limit)),
             out = plan.onesided && !plan.inverse ? half : plan.length;
  const Val length = integer(n, plan.length), row = positions(n, in, 2, 0);
  const Val step = n.binary(BinaryOp::floor_mod, n.mul(row, positions(n, out, 2, 1)), length),
            wide = n.cast(length, DType::f64);
  const Val angle = n.mul(n.div(n.cast(step, DType::f64), wide), n.scalar(2 * M_PI, DType::f64));
  Val cosine = n.unary(UnaryOp::cos, angle), sine = n.unary(UnaryOp::sin, angle);
  if (plan.inverse) {
    Val factor = n.div(n.scalar(1, DType::f64), wide);
    if (real_out) {
      const auto is = [&](Val a, Val b) { return n.binary(BinaryOp::eq, a, b); };
      const Val once = n.binary(BinaryOp::logical_or, is(row, integer(n, 0)),
                                is(n.mul(row, integer(n, 2)), length));
      factor = n.mul(factor, n.select(once, n.scalar(1, DType::f64), n.scalar(2, DType::f64)));
    }
    cosine = n.mul(cosine, factor);
    sine = n.mul(sine, n.unary(UnaryOp::neg, factor));
  }
  cosine = n.cast(cosine, type);
  sine = n.cast(sine, type);  // for clockwise turns
  const Val cut = n.slice(x, 1, 0, in);
  const auto part = [&](int64_t i) { return n.reshape(n.slice(cut, 2, i, 1), {n.dim(x, 0), in}); };
  const auto product = [&](Val a, Val b) { return n.emit(op::MatMul{}, {a, b}); };
  const bool complex = n.static_dim(x, 2) == 2;
  Val real = product(part(0), cosine);
  if (complex) real = n.add(real, product(part(1), sine));
  const auto as_part = [&](Val v) { return with_trailing(n, v, 1); };
  if (real_out) return as_part(real);
  Val imaginary = n.unary(UnaryOp::neg, product(part(0), sine));
  if (complex) imaginary = n.add(imaginary, product(part(1), cosine));
  return n.emit(op::Concat{2}, {as_part(real), as_part(imaginary)});
}

}  // namespace

Val dft(NodeImport& n, Val x, const DftPlan& plan) {
  const int64_t rank = n.rank(x);
  if (n.failed()) return {};
  const int64_t parts = n.need_static_dim(x, rank - 1, "a transform");
  if (rank < 2 || plan.axis >= rank - 1 || parts < 1 || parts > 2)
    n.invalid("a transform needs a signal axis and a last axis of 1 or 2");
  if (parts == 2 && plan.onesided && !plan.inverse) n.invalid("onesided with a complex signal");
  const auto length = as_const(plan.length);
  if (length && (*length < 1 || *length > kMostPoints))
    n.invalid(
        llvm::formatv("a transform of {0} points, expected 1 to {1}", *length, kMostPoints).str());
  if (n.failed()) return {};
  Ints perm;
  for (int64_t i = 0; i < rank; ++i)
    if (i != plan.axis && i + 1 != rank) perm.push_back(i);
  perm.insert(perm.end(), {plan.axis, rank - 1});
  Val moved = n.transpose(x, perm);
  Shape lead(n.shape(moved).begin(), n.shape(moved).end() - 2);
  Expr rows = 1;
  for (const Expr& e : lead) rows = rows * e;
  moved = n.reshape(moved, {rows, n.dim(x, plan.axis), parts});
  const bool known = length && n.static_dim(x, plan.axis);
  const Val y = known ? known_length(n, moved, *length, plan) : open_length(n, moved, plan);
  if (n.failed()) return {};
  lead.insert(lead.end(), {n.dim(y, 1), n.dim(y, 2)});
  Ints back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return n.transpose(n.reshape(y, std::move(lead)), std::move(back));
}

// The axis is an attribute at version 17, and an input since version 20.
void import_dft(NodeImport& n) {
  const Val x = n.in(0);
  DftPlan plan;
  plan.inverse = n.integer("inverse", 0) != 0;
  plan.onesided = n.integer("onesided", 0) != 0;
  const bool open = n.version() >= 20 && n.has(2) && !n.known(n.in(2));
  const auto transformed = [&](int64_t axis) {
    DftPlan own = plan;
    own.axis = axis;
    own.length = n.dim(x, axis);
    if (plan.inverse && plan.onesided) own.length = n.simplified((own.length - Expr(1)) * Expr(2));
    if (open && as_const(own.length) == 0) own.length = 1;  // an axis without elements
    if (n.has(1)) {
      const std::vector<Expr> lengths = n.dims(n.within(n.in(1), 1, kMostPoints, "DFT length"),
                                               "the DFT's length");
      if (lengths.size() == 1) own.length = lengths[0];
    }
    return dft(n, x, own);
  };
  if (n.failed()) return;
  if (n.version() < 20 || !n.has(2))
    return n.set(transformed(n.axis(n.integer("axis", n.version() < 20 ? 1 : -2), n.rank(x))));
  n.set(by_axis(n, n.in(2), n.rank(x), n.rank(x) - 1, transformed));
}

}  // namespace tw::onnx_import
