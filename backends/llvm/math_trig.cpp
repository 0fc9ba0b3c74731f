// Circular functions, their inverses, erf, and the normal distribution
#include <llvm/IR/MDBuilder.h>

#include <limits>

#include "backends/llvm/far_angles.h"
#include "backends/llvm/math.h"
#include "backends/llvm/math_detail.h"

namespace tw::codegen {

using namespace math_detail;

namespace {
constexpr double kHalfPiLow = 6.123233995736766e-17;  // pi/2 less kHalfPi
constexpr double kErfcxCentre = 2.5;                  // as in scripts/fit_math.py

struct SinCos {
  Value *sine, *cosine;  // sine and cosine of the rest in [-pi/4, pi/4]
  Value* quadrant;       // i32, modulo 4
};

// All lanes take the long way where one of them is far.
ReducedAngle reduced_angle(Values& v, Value* x) {
  auto& b = v.b;
  Reduced near = reduce(v, x, 1 / kHalfPi, kHalfPiF64);
  Value* is_far = v.less(v.real(x, kFarAngle), v.abs(x));
  auto together = [&](Value* rest, Value* quadrant) {
    auto* type = llvm::StructType::get(rest->getType(), quadrant->getType());
    Value* both = b.CreateInsertValue(llvm::PoisonValue::get(type), rest, 0);
    return b.CreateInsertValue(both, quadrant, 1);
  };
  llvm::BasicBlock* block = b.GetInsertBlock();
  Value* both = v.branch(
      Values::lanes(x) ? b.CreateOrReduce(is_far) : is_far,
      [&] {
        ReducedAngle far = reduce_far_angle(v, x);
        return together(v.select(is_far, far.rest, near.rest),
                        v.select(is_far, far.quadrant, near.count));
      },
      [&] { return together(near.rest, near.count); });
  if (llvm::Instruction* end = block->getTerminator())
    end->setMetadata(llvm::LLVMContext::MD_prof,
                     llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
  return {b.CreateExtractValue(both, 0), b.CreateExtractValue(both, 1)};
}

SinCos reduced_sin_cos(Values& v, Value* x) {
  auto& b = v.b;
  int count = Values::lanes(x);
  Value* wide = is_f32(x) ? v.widen(x) : x;
  ReducedAngle r = reduced_angle(v, wide);
  Value* rest = is_f32(x) ? b.CreateFPTrunc(r.rest, x->getType()) : r.rest;
  Value* z = b.CreateFMul(rest, rest);
  Value* sine = v.fma(b.CreateFMul(z, rest), polynomial(v, z, TW_TABLE(x, kSin)), rest);
  Value* quartic = b.CreateFMul(b.CreateFMul(z, z), polynomial(v, z, TW_TABLE(x, kCos)));
  Value* cosine = b.CreateFAdd(v.fma(z, v.real(x, -0.5), v.real(x, 1)), quartic);
  return {sine, cosine, b.CreateTrunc(r.quadrant, v.with_lanes(b.getInt32Ty(), count))};
}

Value* bit_set(Values& v, Value* x, int64_t bit) {
  return v.b.CreateICmpNE(v.b.CreateAnd(x, v.integer(x, bit)), v.integer(x, 0));
}

Value* sine_of_quadrant(Values& v, const SinCos& p, Value* quadrant) {
  Value* y = v.select(bit_set(v, quadrant, 1), p.cosine, p.sine);
  return v.select(bit_set(v, quadrant, 2), v.b.CreateFNeg(y), y);
}

// asin(w), where w = a below 1/2, else w = sqrt((1 - a) / 2), which is half of acos(a)
struct ArcParts {
  Value *arc, *large;
};
ArcParts arc_parts(Values& v, Value* x) {
  auto& b = v.b;
  Value* a = v.abs(x);
  Value* large = v.less(v.real(x, 0.5), a);
  Value* z = v.select(large, b.CreateFMul(b.CreateFSub(v.real(x, 1), a), v.real(x, 0.5)),
                      b.CreateFMul(a, a));
  Value* w = v.select(large, v.sqrt(z), a);
  return {v.fma(b.CreateFMul(w, z), polynomial(v, z, TW_TABLE(x, kAsin)), w), large};
}
}  // namespace

Value* math_sin(Values& v, Value* x) {
  SinCos p = reduced_sin_cos(v, x);
  return sine_of_quadrant(v, p, p.quadrant);
}
Value* math_cos(Values& v, Value* x) {
  SinCos p = reduced_sin_cos(v, x);
  return sine_of_quadrant(v, p, v.b.CreateAdd(p.quadrant, v.integer(p.quadrant, 1)));
}
Value* math_tan(Values& v, Value* x) {
  SinCos p = reduced_sin_cos(v, x);
  Value* odd = bit_set(v, p.quadrant, 1);
  return v.b.CreateFDiv(v.select(odd, v.b.CreateFNeg(p.cosine), p.sine),
                        v.select(odd, p.sine, p.cosine));
}

Value* math_asin(Values& v, Value* x) {
  ArcParts p = arc_parts(v, x);
  Value* upper = v.fma(p.arc, v.real(x, -2), v.real(x, kHalfPi));
  return v.copysign(v.select(p.large, upper, p.arc), x);
}

Value* math_acos(Values& v, Value* x) {
  auto& b = v.b;
  ArcParts p = arc_parts(v, x);
  Value* negative = v.less(x, v.real(x, 0));
  Value* twice = b.CreateFAdd(p.arc, p.arc);
  double low = is_f32(x) ? -4.37113883e-08 : kHalfPiLow;  // pi/2 less its rounded value
  Value* small = v.select(negative, b.CreateFNeg(p.arc), p.arc);
  Value* inner = b.CreateFSub(v.real(x, kHalfPi), b.CreateFSub(small, v.real(x, low)));
  Value* far = b.CreateFAdd(b.CreateFSub(v.real(x, 2 * kHalfPi), twice), v.real(x, 2 * low));
  return v.select(p.large, v.select(negative, far, twice), inner);
}

// Brings |x| below tan(pi/8), by -1/x + pi/2 or (x - 1)/(x + 1) + pi/4, with one division.
Value* math_atan(Values& v, Value* x) {
  auto& b = v.b;
  Value* a = v.abs(x);
  Value* far = v.less(v.real(x, 2.414213562373095), a);
  Value* middle = v.less(v.real(x, 0.4142135623730951), a);
  Value* one = v.real(x, 1);
  Value* top = v.select(far, v.real(x, -1), v.select(middle, b.CreateFSub(a, one), a));
  Value* bottom = v.select(far, a, v.select(middle, b.CreateFAdd(a, one), one));
  Value* w = b.CreateFDiv(top, bottom);
  Value* z = b.CreateFMul(w, w);
  Value* arc = v.fma(b.CreateFMul(w, z), polynomial(v, z, TW_TABLE(x, kAtan)), w);
  Value* base = v.select(far, v.real(x, kHalfPi),
                         v.select(middle, v.real(x, kHalfPi / 2), v.real(x, 0)));
  return v.copysign(b.CreateFAdd(base, arc), x);
}

Value* math_erf(Values& v, Value* x) {
  auto& b = v.b;
  Value* a = v.abs(x);
  Value* one = v.real(x, 1);
  if (is_f32(x)) {
    Value* c = clamp(v, a, 0, 3.924);
    Value* z = b.CreateFMul(c, c);
    Value* y = b.CreateFDiv(b.CreateFMul(c, polynomial(v, z, kErfTopF32)),
                            polynomial(v, z, kErfBottomF32));
    return v.copysign(v.select(v.less(one, y), one, y), x);
  }
  Value* square = b.CreateFMul(a, a);
  Value* small = b.CreateFMul(a,
                              polynomial(v, v.select(v.less(a, one), square, one), kErfSmallF64));
  Value* c = clamp(v, a, 1, 6);
  Value* u = b.CreateFDiv(b.CreateFSub(c, v.real(x, kErfcxCentre)),
                          b.CreateFAdd(c, v.real(x, kErfcxCentre)));
  Value* decay = math_exp(v, b.CreateFNeg(b.CreateFMul(c, c)));
  Value* large = b.CreateFSub(one, b.CreateFMul(decay, polynomial(v, u, kErfcxF64)));
  return v.copysign(v.select(v.less(a, one), small, large), x);
}

// The part that rounding dropped from a * a = square. Without a fused product it comes from (high +
// low)^2, of which high^2 is exact.
static Value* square_rest(Values& v, Value* a, Value* square) {
  auto& b = v.b;
  if (v.traits.fma) return v.fma(a, a, b.CreateFNeg(square));
  Value* high = v.from_bits(b.CreateAnd(
      v.bits(a), v.integer(v.bits(a), is_f32(a) ? ~int64_t{0xfff} : ~int64_t{0x7ffffff})));
  Value* low = b.CreateFSub(a, high);
  return b.CreateFAdd(b.CreateFSub(b.CreateFMul(high, high), square),
                      b.CreateFMul(low, b.CreateFAdd(a, high)));
}

// At -|x| this is exp(-x^2/2) R(|x|) with a rational function R. The exponential's reduced argument
// makes up for the rounding of x^2. As in math_sigmoid the power of two is 0 at the clamped end,
// and results next to 0 are lost.
Value* math_normal_cdf(Values& v, Value* x) {
  auto& b = v.b;
  const bool f32 = is_f32(x);
  Value *one = v.real(x, 1), *a = v.abs(x), *end = v.real(x, f32 ? 13.27 : 37.66);
  a = v.select(v.less(end, a), end, a);
  Value* square = b.CreateFMul(a, a);
  Value* magic = v.real(x, f32 ? 0x1.8p23 + 127 : 0x1.8p52 + 1023);
  Value* sum = v.fma(square, v.real(x, -0.5 * kLog2E), magic);
  Value* k = b.CreateFSub(sum, magic);
  Value* t = b.CreateFMul(square, v.real(x, -0.5));
  for (double part : TW_TABLE(x, kLn2)) t = v.fma(k, v.real(x, -part), t);
  t = v.fma(square_rest(v, a, square), v.real(x, -0.5), t);
  Value* power = v.from_bits(b.CreateShl(v.bits(sum), v.integer(v.bits(sum), f32 ? 23 : 52)));
  Value* decay = b.CreateFMul(v.fma(v.fma(polynomial(v, t, TW_TABLE(x, kExp)), t, one), t, one),
                              power);
  Value* tail = b.CreateFDiv(b.CreateFMul(decay, polynomial(v, a, TW_TABLE(x, kNormalTop))),
                             polynomial(v, a, TW_TABLE(x, kNormalBottom)));
  return v.select(v.less(v.real(x, 0), x), b.CreateFSub(one, tail), tail);
}
}  // namespace tw::codegen
