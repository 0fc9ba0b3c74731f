// Importers of element-wise operators: f(x), f(a, b), variadic sums, comparisons, logic, Where,
// Cast, Clip.
#include <cmath>
#include <limits>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"
#include "ir/graph/externs.h"
#include "ir/storage_types.h"

namespace tw::onnx_import {

namespace {
// x as a tensor to compute with: types for storage alone become f32.
Val number(NodeImport& n, Val x) { return is_storage_only(n.dtype(x)) ? n.cast(x, DType::f32) : x; }
}  // namespace

// Only Erf takes integers too; its results are truncated.
void import_unary(NodeImport& n, UnaryOp function) {
  const Val x = number(n, n.in(0));
  if (function != UnaryOp::erf || is_float(n.dtype(x))) return n.set(n.unary(function, x));
  n.set(n.cast(n.unary(function, n.cast(x, DType::f64)), n.dtype(x)));
}

// Before version 7, an attribute `broadcast` aligns the shapes in another way; the converter
// rewrites such nodes.
void import_binary(NodeImport& n, BinaryOp function) {
  if (function == BinaryOp::eq && n.dtype(n.in(0)) == DType::string) return import_string_equal(n);
  n.set(n.binary(function, n.in(0), n.in(1)));
}

void import_greater(NodeImport& n, bool or_equal) {
  n.set(n.binary(or_equal ? BinaryOp::le : BinaryOp::lt, n.in(1), n.in(0)));
}

namespace {

// Computes in f64 and truncates. A power that is within its error of an integer becomes that
// integer.
Val integer_power(NodeImport& n, Val base, Val exponent) {
  const Val power = n.binary(BinaryOp::pow, n.cast(base, DType::f64), n.cast(exponent, DType::f64)),
            whole = n.unary(UnaryOp::round, power);
  const Val off = n.unary(UnaryOp::abs, n.sub(power, whole)),
            error = n.mul(n.unary(UnaryOp::abs, whole), n.scalar(1e-12, power));
  return n.cast(n.select(n.binary(BinaryOp::le, off, error), whole, power), n.dtype(base));
}

}  // namespace

void import_pow(NodeImport& n) {
  const Val base = n.in(0), exponent = n.in(1);
  const DType type = n.dtype(base), own = n.dtype(exponent);
  if (n.failed()) return;
  if (is_int(type) && is_float(own)) return n.set(integer_power(n, base, exponent));
  // Beside a float of another type, the exponent keeps its precision
  const DType wide = type == own || is_int(type)               ? type
                     : type == DType::f64 || own == DType::f64 ? DType::f64
                                                               : DType::f32;
  n.set(n.cast(n.binary(BinaryOp::pow, n.cast(base, wide), n.cast(exponent, wide)), type));
}

// fmod: the sign is that of the dividend, as in C. Otherwise it is that of the divisor, as in
// Python (integers only).
void import_mod(NodeImport& n) {
  const bool fmod = n.integer("fmod", 0) != 0;
  n.set(n.binary(fmod ? BinaryOp::mod : BinaryOp::floor_mod, n.in(0), n.in(1)));
}

void import_bit_shift(NodeImport& n) {
  const std::string direction = n.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.invalid("attribute direction is '" + direction + "', not LEFT or RIGHT");
  n.set(n.binary(direction == "LEFT" ? BinaryOp::shl : BinaryOp::shr, n.in(0), n.in(1)));
}

void import_variadic(NodeImport& n, BinaryOp function) {
  Val total = n.in(0);
  for (size_t i = 1; i < n.input_count(); ++i) total = n.binary(function, total, n.in(i));
  n.set(total);
}

void import_mean(NodeImport& n) {
  Val total = n.in(0);
  for (size_t i = 1; i < n.input_count(); ++i) total = n.add(total, n.in(i));
  n.set(n.div(total, n.scalar(static_cast<double>(n.input_count()), total)));
}

void import_where(NodeImport& n) { n.set(n.select(n.in(0), n.in(1), n.in(2))); }

namespace {

// The core's cast takes the exponent as it is, so a number is rounded up by casting twice the
// number. Signs are dropped.
Val cast_to_power(NodeImport& n, Val x, bool saturate, const std::string& mode) {
  const Val size = n.unary(UnaryOp::abs, n.cast(x, DType::f32)),
            power = n.cast(n.cast(size, DType::f8e8m0), DType::f32);
  if (mode != "up" && mode != "nearest" && mode != "down")
    n.invalid("attribute round_mode is '" + mode + "'");
  if (mode == "down") return n.cast(size, DType::f8e8m0);
  const Val up = mode == "up" ? n.less(power, size)
                              : n.binary(BinaryOp::le, n.mul(power, n.scalar(1.5, power)), size);
  Val twice = n.mul(size, n.scalar(2, size));
  if (saturate) twice = n.select(n.less(size, n.scalar(0x1p127, size)), twice, size);
  return n.cast(n.select(up, twice, size), DType::f8e8m0);
}

void cast_with_attributes(NodeImport& n, DType to) {
  const Val x = n.in(0);
  const bool saturate = n.integer("saturate", 1) != 0;
  if (n.failed() || n.dtype(x) == to) return n.set(x);
  if (to == DType::string || n.dtype(x) == DType::string)
    return n.fail("dtype string",
                  "strings and numbers are not cast into each other: look words up "
                  "with LabelEncoder, or cast outside of the model");
  if (to == DType::f8e8m0) return n.set(cast_to_power(n, x, saturate, n.text("round_mode", "up")));
  n.set(n.emit(op::Cast{to, is_small_float(to) && saturate}, {x}));
}

}  // namespace

void import_cast(NodeImport& n) {
  const int64_t to = n.integer("to", 0);
  const auto dtype = dtype_from_onnx(static_cast<int>(to));
  if (!dtype)
    return n.fail("dtype " + element_type_name(static_cast<int>(to)),
                  "cast to a number type or bool; complex numbers are not supported");
  cast_with_attributes(n, *dtype);
}

void import_bit_cast(NodeImport& n) {
  const std::vector<Val> made = n.emit_extern(ExternFunction::bit_cast, {n.integer("to", 0)}, {},
                                              {n.in(0)});
  if (!n.failed()) n.set(made[0]);
}

void import_cast_like(NodeImport& n) {
  const Val like = n.in(1);
  cast_with_attributes(n, n.dtype(like));
}

void import_identity(NodeImport& n) { n.set(n.in(0)); }

namespace {
// A bound of Clip: an optional input, or before version 11 an attribute, whose default keeps
// infinities out.
Val clip_bound(NodeImport& n, size_t input, const char* attribute, float otherwise, Val x) {
  return n.version() >= 11 ? n.maybe(input) : n.scalar(n.real(attribute, otherwise), x);
}
}  // namespace

void import_clip(NodeImport& n) {
  Val x = n.in(0);
  constexpr float most = std::numeric_limits<float>::max();
  const Val low = clip_bound(n, 1, "min", -most, x), high = clip_bound(n, 2, "max", most, x);
  if (low.valid()) x = n.max(low, x);
  if (high.valid()) x = n.min(high, x);
  n.set(x);
}

void import_is_inf(NodeImport& n) {
  const Val x = number(n, n.in(0)), zero = n.scalar(0, x);
  Val result = n.unary(UnaryOp::is_inf, x);
  const bool negative = n.integer("detect_negative", 1) != 0,
             positive = n.integer("detect_positive", 1) != 0;
  if (!negative) result = n.binary(BinaryOp::logical_and, result, n.less(zero, x));
  if (!positive) result = n.binary(BinaryOp::logical_and, result, n.less(x, zero));
  n.set(result);
}

void import_reciprocal(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.div(n.scalar(1, x), x));
}

namespace {

// log(2x) for numbers whose square would overflow.
Val log_of_twice(NodeImport& n, Val x) {
  return n.add(n.unary(UnaryOp::log, x), n.scalar(std::log(2.0), x));
}

// sinh of |x| is s + s / (2 s + 1) with s = (e^|x| - 1) / 2. Here s = m (m + 2) / 2 with m = e^(|x|
// / 2) - 1, which does not overflow.
Val sinh_of_size(NodeImport& n, Val size) {
  const Val half = n.scalar(0.5, size), m = n.unary(UnaryOp::expm1, n.mul(half, size));
  const Val s = n.mul(n.mul(half, m), n.add(m, n.scalar(2, size))),
            bounded = n.min(n.scalar(0x1p100, size), s);
  return n.add(s, n.div(bounded, n.add(n.add(bounded, bounded), n.scalar(1, size))));
}

Val cosh_of_size(NodeImport& n, Val size) {
  const Val half = n.scalar(0.5, size), root = n.unary(UnaryOp::exp, n.mul(half, size)),
            up = n.mul(n.mul(half, root), root);
  return n.add(up, n.div(n.scalar(0.25, size), up));
}

constexpr double kLarge = 0x1p28;  // beside its square 1 is lost, in f64 too

Val asinh_of_size(NodeImport& n, Val size) {
  const Val one = n.scalar(1, size), a = n.min(n.scalar(kLarge, size), size), square = n.mul(a, a);
  const Val more = n.div(square, n.add(one, n.unary(UnaryOp::sqrt, n.add(square, one))));
  return n.select(n.less(n.scalar(kLarge, size), size), log_of_twice(n, size),
                  n.unary(UnaryOp::log1p, n.add(a, more)));
}

Val acosh(NodeImport& n, Val x) {
  const Val t = n.min(n.scalar(kLarge, x), n.sub(x, n.scalar(1, x))),
            root = n.mul(n.unary(UnaryOp::sqrt, t),
                         n.unary(UnaryOp::sqrt, n.add(t, n.scalar(2, x))));
  return n.select(n.less(n.scalar(kLarge, x), x), log_of_twice(n, x),
                  n.unary(UnaryOp::log1p, n.add(t, root)));
}

Val atanh_of_size(NodeImport& n, Val size) {
  return n.mul(n.scalar(0.5, size),
               n.unary(UnaryOp::log1p, n.div(n.add(size, size), n.sub(n.scalar(1, size), size))));
}

Val hyperbolic(NodeImport& n, Hyperbolic which, Val x) {
  const Val size = n.unary(UnaryOp::abs, x);
  const auto odd = [&](Val y) { return n.mul(n.unary(UnaryOp::sign, x), y); };
  switch (which) {
    case Hyperbolic::sinh: return odd(sinh_of_size(n, size));
    case Hyperbolic::cosh: return cosh_of_size(n, size);
    case Hyperbolic::asinh: return odd(asinh_of_size(n, size));
    case Hyperbolic::acosh: return acosh(n, x);
    case Hyperbolic::atanh: return odd(atanh_of_size(n, size));
  }
  TW_UNREACHABLE("a hyperbolic function");
}

}  // namespace

// Computes with exponentials and logarithms, in f32 or f64, without cancellation near 0 or overflow
// on the way.
void import_hyperbolic(NodeImport& n, Hyperbolic which) {
  const Val x = n.in(0);
  const DType type = n.dtype(x);
  if (n.failed()) return;
  n.set(n.cast(hyperbolic(n, which, n.cast(x, type == DType::f64 ? type : DType::f32)), type));
}

}  // namespace tw::onnx_import
