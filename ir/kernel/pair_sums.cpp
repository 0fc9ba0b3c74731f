// Models Arm's BFDOT and BFMMLA without FEAT_EBF16 (BFDotAdd in Arm's Architecture Reference
// Manual) and x86's VDPBF16PS. A double holds a product of two bf16 numbers exactly. A sum rounded
// to odd in double may be rounded once more as if it were exact.
#include "ir/kernel/pair_sums.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

namespace tw::interpreter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Bits of a double beyond f32's precision
constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1;

double without_subnormal(double x) {
  return std::fabs(x) < double{FLT_MIN} ? std::copysign(0.0, x) : x;
}

// Adds with rounding to odd: the last bit of an inexact sum is set.
double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double of_b = sum - a, rest = (a - (sum - of_b)) + (b - of_b);
  if (rest == 0 || std::bit_cast<uint64_t>(sum) % 2 == 1) return sum;
  return std::nextafter(sum, rest > 0 ? kInfinity : -kInfinity);
}

// Rounds to f32 to odd: cuts off the bits beyond f32 and sets the last bit if any was set.
double float_to_odd(double x) {
  if (std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(x) >= 2 * std::ldexp(1.0, FLT_MAX_EXP - 1)) return std::copysign(kInfinity, x);
  x = without_subnormal(x);
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t cut = bits & ~kBelowFloat;
  return std::bit_cast<double>(cut == bits ? cut : cut | (kBelowFloat + 1));
}

// Rounds to f32 to nearest. A result that is subnormal after rounding becomes zero.
double float_to_nearest(double x) {
  return std::fabs(x) < double{FLT_MIN} * (1 - FLT_EPSILON / 4)
             ? std::copysign(0.0, x)
             : static_cast<double>(static_cast<float>(x));
}

double value_of(const FloatProduct& product) {
  return without_subnormal(product.left) * without_subnormal(product.right);
}

}  // namespace

double add_pair(PairRule rule, double sum, const FloatProduct& first, const FloatProduct& second) {
  sum = without_subnormal(sum);
  if (rule == PairRule::to_odd) {
    const double both = sum_to_odd(float_to_odd(value_of(first)), float_to_odd(value_of(second)));
    return float_to_odd(sum_to_odd(sum, float_to_odd(both)));
  }
  sum = float_to_nearest(sum_to_odd(sum, value_of(second)));
  return float_to_nearest(sum_to_odd(sum, value_of(first)));
}

}  // namespace tw::interpreter
