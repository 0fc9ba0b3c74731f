#include "ir/scalar_ops.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/storage_types.h"
#include "support/diag.h"

namespace tw {

int64_t wrap_to(DType type, int64_t value) {
  switch (type) {
    case DType::i8: return static_cast<int8_t>(value);
    case DType::i16: return static_cast<int16_t>(value);
    case DType::i32: return static_cast<int32_t>(value);
    case DType::u8: return static_cast<uint8_t>(value);
    case DType::u16: return static_cast<uint16_t>(value);
    case DType::u32: return static_cast<uint32_t>(value);
    case DType::boolean: return value != 0;
    case DType::i64:
    case DType::u64:
    case DType::string: return value;
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: break;
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: {
      const int unused = 64 - dtype_bits(type);
      const uint64_t top = static_cast<uint64_t>(value) << unused;
      return is_signed_int(type) ? static_cast<int64_t>(top) >> unused
                                 : static_cast<int64_t>(top >> unused);
    }
  }
  TW_UNREACHABLE("{0} is not an integer type", dtype_name(type));
}

bool divides(BinaryOp op) {
  return op == BinaryOp::div || op == BinaryOp::floor_div || op == BinaryOp::floor_mod ||
         op == BinaryOp::mod;
}

int64_t floor_div_int(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t floor_mod_int(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

namespace {

int64_t divide(BinaryOp op, bool unsign, int64_t a, int64_t b) {
  TW_CHECK(b != 0, "division by zero");
  bool quotient = op == BinaryOp::div || op == BinaryOp::floor_div;
  if (unsign) {
    uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    return static_cast<int64_t>(quotient ? ua / ub : ua % ub);
  }
  if (op == BinaryOp::floor_div) return floor_div_int(a, b);
  if (op == BinaryOp::floor_mod) return floor_mod_int(a, b);
  if (b == -1) return quotient ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : 0;
  return quotient ? a / b : a % b;
}

int64_t power(bool unsign, int64_t a, int64_t b) {
  if (!unsign && b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1, base = static_cast<uint64_t>(a);
  for (uint64_t n = static_cast<uint64_t>(b); n; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return static_cast<int64_t>(result);
}

int64_t shift(BinaryOp op, DType type, int64_t a, int64_t b) {
  int width = dtype_bytes(type) * 8;
  bool beyond = b < 0 || b >= width;  // includes u64 amounts past 2^63
  if (op == BinaryOp::shl) return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  if (is_signed_int(type)) return a >> (beyond ? 63 : b);
  return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
}

}  // namespace

int64_t int_binary(BinaryOp op, DType type, int64_t a, int64_t b) {
  bool unsign = !is_signed_int(type);
  uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  auto less = [&](bool or_equal) {
    return or_equal ? (unsign ? ua <= ub : a <= b) : (unsign ? ua < ub : a < b);
  };
  auto wrapped = [&](uint64_t v) { return wrap_to(type, static_cast<int64_t>(v)); };
  switch (op) {
    case BinaryOp::add: return wrapped(ua + ub);
    case BinaryOp::sub: return wrapped(ua - ub);
    case BinaryOp::mul: return wrapped(ua * ub);
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod: return wrap_to(type, divide(op, unsign, a, b));
    case BinaryOp::min: return less(false) ? a : b;
    case BinaryOp::max: return less(true) ? b : a;
    case BinaryOp::pow: return wrap_to(type, power(unsign, a, b));
    case BinaryOp::lt: return less(false);
    case BinaryOp::le: return less(true);
    case BinaryOp::eq: return a == b;
    case BinaryOp::ne: return a != b;
    case BinaryOp::logical_and: return a && b;
    case BinaryOp::logical_or: return a || b;
    case BinaryOp::logical_xor: return !a != !b;
    case BinaryOp::bit_and: return a & b;
    case BinaryOp::bit_or: return a | b;
    case BinaryOp::bit_xor: return a ^ b;
    case BinaryOp::shl:
    case BinaryOp::shr: return wrap_to(type, shift(op, type, a, b));
  }
  TW_UNREACHABLE("bad binary operator");
}

namespace {

int64_t saturate_int(DType type, DType from, int64_t v) {
  if (wrap_to(type, v) == v && !((type == DType::u64 && is_signed_int(from) && v < 0) ||
                                 (from == DType::u64 && v < 0 && type != DType::u64)))
    return v;
  return is_signed_int(from) && v < 0 ? lowest_of(type) : highest_of(type);
}

}  // namespace

int64_t cast_int(DType type, DType from, int64_t value, bool saturate) {
  return saturate && is_int(type) ? saturate_int(type, from, value) : wrap_to(type, value);
}

namespace {

// The nearest number of T toward zero; NaN gives 0
template <class T>
T truncated(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

}  // namespace

int64_t float_to_int(DType type, double value, bool saturate) {
  if (type == DType::boolean) return value != 0;
  if (type == DType::u64 && (saturate || !(value < 0)))
    return static_cast<int64_t>(truncated<uint64_t>(value));
  const bool wide = saturate || dtype_bits(type) == 64 || type == DType::u32;
  return cast_int(type, DType::i64, wide ? truncated<int64_t>(value) : truncated<int32_t>(value),
                  saturate);
}

double round_to(DType type, double value, bool saturate) {
  switch (type) {
    case DType::f64: return value;
    case DType::f32: return static_cast<float>(value);
    case DType::f16: return f16_to_f32(f32_to_f16(static_cast<float>(value)));
    case DType::bf16: return bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
    case DType::boolean:
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2:
    case DType::string: break;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
      return small_to_f32(type, f32_to_small(type, static_cast<float>(value), saturate));
  }
  TW_UNREACHABLE("{0} is not a float type", dtype_name(type));
}

std::optional<double> exact_inverse(DType type, double value) {
  int exponent = 0;
  if (std::fabs(std::frexp(value, &exponent)) != 0.5) return std::nullopt;
  const double inverse = 1 / value;
  if (type != DType::f64 && std::fabs(inverse) < 0x1p-126)
    return std::nullopt;  // NEON flushes it to 0
  return round_to(type, inverse) == inverse ? std::optional<double>(inverse) : std::nullopt;
}

float round_to_tf32(float value) {
  if (std::isnan(value)) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000u) & 0xffffe000u);
}

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

namespace {

// Computes in long double: the result amplifies the rounding of x / sqrt(2) by a factor of x^2.
double normal_cdf(double x) {
  return static_cast<double>(0.5L * std::erfc(-x * 0.707106781186547524400844362104849039L));
}

}  // namespace

double float_unary(UnaryOp f, double x) {
  switch (f) {
    case UnaryOp::neg: return -x;
    case UnaryOp::abs: return std::fabs(x);
    case UnaryOp::exp: return std::exp(x);
    case UnaryOp::exp2: return std::exp2(x);
    case UnaryOp::expm1: return std::expm1(x);
    case UnaryOp::log: return std::log(x);
    case UnaryOp::log1p: return std::log1p(x);
    case UnaryOp::sqrt: return std::sqrt(x);
    case UnaryOp::rsqrt: return 1 / std::sqrt(x);
    case UnaryOp::tanh: return std::tanh(x);
    case UnaryOp::erf: return std::erf(x);
    case UnaryOp::normal_cdf: return normal_cdf(x);
    case UnaryOp::sigmoid: return sigmoid(x);
    case UnaryOp::sin: return std::sin(x);
    case UnaryOp::cos: return std::cos(x);
    case UnaryOp::tan: return std::tan(x);
    case UnaryOp::asin: return std::asin(x);
    case UnaryOp::acos: return std::acos(x);
    case UnaryOp::atan: return std::atan(x);
    case UnaryOp::floor: return std::floor(x);
    case UnaryOp::ceil: return std::ceil(x);
    case UnaryOp::round: return std::nearbyint(x);
    case UnaryOp::trunc: return std::trunc(x);
    case UnaryOp::tf32: return round_to_tf32(static_cast<float>(x));
    case UnaryOp::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case UnaryOp::is_nan: return std::isnan(x);
    case UnaryOp::is_inf: return std::isinf(x);
    case UnaryOp::logical_not:
    case UnaryOp::bit_not: break;
  }
  TW_UNREACHABLE("{0} of a float", op_name(f));
}

static double floor_mod(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_binary(BinaryOp f, double a, double b) {
  switch (f) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
    case BinaryOp::floor_div: return std::floor(a / b);
    case BinaryOp::floor_mod: return floor_mod(a, b);
    case BinaryOp::mod: return std::fmod(a, b);
    case BinaryOp::min: return a < b || std::isnan(a) ? a : b;
    case BinaryOp::max: return a > b || std::isnan(a) ? a : b;
    case BinaryOp::pow: return std::pow(a, b);
    case BinaryOp::lt: return a < b;
    case BinaryOp::le: return a <= b;
    case BinaryOp::eq: return a == b;
    case BinaryOp::ne: return a != b;
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: break;
  }
  TW_UNREACHABLE("{0} of floats", op_name(f));
}

}  // namespace tw
