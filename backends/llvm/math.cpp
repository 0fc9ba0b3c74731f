// Exponentials, logarithms and powers. Each reduces the argument, evaluates a polynomial of
// math_tables.h, and undoes the reduction.
#include "backends/llvm/math.h"

#include <limits>

#include "backends/llvm/math_detail.h"

namespace tw::codegen {

using namespace math_detail;

namespace math_detail {
Value* polynomial(Values& v, Value* x, std::span<const double> c) {
  Value* sum = v.splat(v.real(x, c.back()), Values::lanes(x));
  for (size_t k = c.size() - 1; k-- > 0;) sum = v.fma(sum, x, v.real(x, c[k]));
  return sum;
}

// x = k * step + r. Adding the magic number leaves k in the low bits of the sum.
Reduced reduce(Values& v, Value* x, double per_step, std::span<const double> step_parts) {
  double magic = is_f32(x) ? 0x1.8p23 : 0x1.8p52;
  Value* sum = v.fma(x, v.real(x, per_step), v.real(x, magic));
  Value* k = v.b.CreateFSub(sum, v.real(x, magic));
  Value* rest = x;
  for (double part : step_parts) rest = v.fma(k, v.real(x, -part), rest);
  Value* sum_bits = v.bits(sum);
  return {v.b.CreateSub(sum_bits, v.bits(v.real(x, magic))), rest};
}

Value* power_of_two(Values& v, Value* k, bool f32) {
  return v.from_bits(
      v.b.CreateShl(v.b.CreateAdd(k, v.integer(k, f32 ? 127 : 1023)), v.integer(k, f32 ? 23 : 52)));
}

// NaN stays NaN.
Value* clamp(Values& v, Value* x, double low, double high) {
  x = v.select(v.less(x, v.real(x, low)), v.real(x, low), x);
  return v.select(v.less(v.real(x, high), x), v.real(x, high), x);
}
}  // namespace math_detail

namespace {
// exp(x) - 1 = 2^k (p + 1) - 1 with p = exp(r) - 1.
struct ExpParts {
  Value *k, *p;
};
ExpParts exp_parts(Values& v, Value* x) {
  Reduced r = reduce(v, x, kLog2E, TW_TABLE(x, kLn2));
  Value* square = v.b.CreateFMul(r.rest, r.rest);
  return {r.count, v.fma(square, polynomial(v, r.rest, TW_TABLE(x, kExp)), r.rest)};
}

Value* loop_while(Values& v, llvm::MutableArrayRef<Value*> state,
                  llvm::function_ref<Value*()> go_on, llvm::function_ref<void()> step) {
  auto& b = v.b;
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* before = b.GetInsertBlock();
  auto* test = llvm::BasicBlock::Create(b.getContext(), "test", f);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "step", f);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", f);
  b.CreateBr(test);
  b.SetInsertPoint(test);
  std::vector<llvm::PHINode*> phis;
  for (Value*& s : state) {
    phis.push_back(b.CreatePHI(s->getType(), 2));
    phis.back()->addIncoming(s, before);
    s = phis.back();
  }
  Value* active = go_on();
  b.CreateCondBr(Values::lanes(active) ? b.CreateOrReduce(active) : active, body, done);
  b.SetInsertPoint(body);
  step();
  for (size_t i = 0; i < phis.size(); ++i) {
    phis[i]->addIncoming(state[i], b.GetInsertBlock());
    state[i] = phis[i];
  }
  b.CreateBr(test);
  b.SetInsertPoint(done);
  return active;
}
}  // namespace

Value* math_exp(Values& v, Value* x) {
  bool f32 = is_f32(x);
  x = clamp(v, x, f32 ? -104 : -746, f32 ? 89 : 710);
  ExpParts e = exp_parts(v, x);
  // Two steps, so that subnormal results are rounded once.
  Value* half = v.b.CreateAShr(e.k, v.integer(e.k, 1));
  Value* y = v.b.CreateFAdd(e.p, v.real(x, 1));
  y = v.b.CreateFMul(y, power_of_two(v, half, f32));
  return v.b.CreateFMul(y, power_of_two(v, v.b.CreateSub(e.k, half), f32));
}

// 2^k 2^r, as 2^(k-1) times twice the polynomial, so that the largest results do not overflow on
// the way. The magic number contains the exponent's bias, so that a shift alone makes the power of
// two, which is 0 or infinity at the clamped ends.
Value* math_exp2(Values& v, Value* x) {
  const bool f32 = is_f32(x);
  const int64_t bias = f32 ? 127 : 1023, mantissa = f32 ? 23 : 52;
  const double magic = (f32 ? 0x1.8p23 : 0x1.8p52) + static_cast<double>(bias - 1);
  x = clamp(v, x, static_cast<double>(1 - bias), static_cast<double>(bias + 2));
  Value* sum = v.b.CreateFAdd(x, v.real(x, magic));
  Value* rest = v.b.CreateFSub(x, v.b.CreateFSub(sum, v.real(x, magic)));
  std::vector<double> twice = {2, 2 * kLn2};  // 2 exp(rest log 2)
  double power = 2 * kLn2 * kLn2;
  for (const double c : TW_TABLE(x, kExp)) twice.push_back(c * power), power *= kLn2;
  Value* scale = v.from_bits(v.b.CreateShl(v.bits(sum), v.integer(v.bits(sum), mantissa)));
  return v.b.CreateFMul(polynomial(v, rest, twice), scale);
}

// 2 (p 2^(k-1) + (2^(k-1) - 1/2)). Near 0 this is p, and the largest results do not overflow on the
// way.
Value* math_expm1(Values& v, Value* x) {
  const bool f32 = is_f32(x);
  x = clamp(v, x, f32 ? -30 : -60, f32 ? 89 : 710);
  ExpParts e = exp_parts(v, x);
  Value* half_scale = power_of_two(v, v.b.CreateSub(e.k, v.integer(e.k, 1)), f32);
  Value* half = v.fma(e.p, half_scale, v.b.CreateFSub(half_scale, v.real(x, 0.5)));
  return v.b.CreateFAdd(half, half);
}

// 1 / (1 + exp(-x)). The magic number contains the exponent's bias, so that a shift alone makes the
// power of two. At the clamped ends that is 0 or infinity, which give 1 and 0. Results below a
// quarter of the smallest normal number are lost.
Value* math_sigmoid(Values& v, Value* x) {
  const bool f32 = is_f32(x);
  const int64_t mantissa = f32 ? 23 : 52;
  const double magic = f32 ? 0x1.8p23 + 127 : 0x1.8p52 + 1023;
  Value* t = v.b.CreateFNeg(clamp(v, x, f32 ? -89 : -710, f32 ? 88 : 709));
  Value* sum = v.fma(t, v.real(x, kLog2E), v.real(x, magic));
  Value* k = v.b.CreateFSub(sum, v.real(x, magic));
  for (double part : TW_TABLE(x, kLn2)) t = v.fma(k, v.real(x, -part), t);
  Value* power = v.from_bits(v.b.CreateShl(v.bits(sum), v.integer(v.bits(sum), mantissa)));
  Value* one = v.real(x, 1);
  Value* e = v.fma(v.fma(polynomial(v, t, TW_TABLE(x, kExp)), t, one), t, one);
  return v.b.CreateFDiv(one, v.fma(e, power, one));
}

Value* math_tanh(Values& v, Value* x) {
  // Beyond the limit the result is 1 in this precision.
  Value* a = clamp(v, v.abs(x), 0, is_f32(x) ? 10 : 20);
  ExpParts e = exp_parts(v, v.b.CreateFAdd(a, a));
  Value* scale = power_of_two(v, e.k, is_f32(x));
  Value* less_one = v.fma(e.p, scale, v.b.CreateFSub(scale, v.real(x, 1)));
  return v.copysign(v.b.CreateFDiv(less_one, v.b.CreateFAdd(less_one, v.real(x, 2))), x);
}

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// k with x = 2^k m and m in [sqrt(1/2), sqrt(2)), for positive normal numbers.
Value* log_exponent(Values& v, Value* x) {
  Value* all = v.bits(x);
  return v.b.CreateAShr(v.b.CreateSub(all, v.bits(v.real(x, 0.70710678118654752))),
                        v.integer(all, is_f32(x) ? 23 : 52));
}

// log(2^k (1 + f)), by s = f / (2 + f)
Value* log_of_parts(Values& v, Value* k, Value* f) {
  auto& b = v.b;
  Value* kf = b.CreateSIToFP(k, f->getType());
  Value* s = b.CreateFDiv(f, b.CreateFAdd(f, v.real(f, 2)));
  Value* z = b.CreateFMul(s, s);
  Value* tail = b.CreateFMul(z, polynomial(v, z, TW_TABLE(f, kLog)));
  Value* half_square = b.CreateFMul(b.CreateFMul(f, f), v.real(f, 0.5));
  auto ln2 = TW_TABLE(f, kLn2);
  Value* low = v.fma(s, b.CreateFAdd(half_square, tail), b.CreateFMul(kf, v.real(f, ln2[1])));
  return v.fma(kf, v.real(f, ln2[0]), b.CreateFSub(f, b.CreateFSub(half_square, low)));
}

// Replaces y, the logarithm of x, where x is not positive and finite.
Value* log_or_special(Values& v, Value* y, Value* x, double pole) {
  y = v.select(v.b.CreateFCmpOEQ(x, v.real(x, pole)), v.real(x, -kInfinity), y);
  y = v.select(v.less(x, v.real(x, pole)), v.real(x, std::numeric_limits<double>::quiet_NaN()), y);
  return v.select(v.less(x, v.real(x, kInfinity)), y, x);
}
}  // namespace

Value* math_log(Values& v, Value* x) {
  auto& b = v.b;
  bool f32 = is_f32(x);
  Value* tiny = v.less(x, v.real(x, f32 ? 0x1p-126 : 0x1p-1022));
  Value* scaled = v.select(tiny, b.CreateFMul(x, v.real(x, f32 ? 0x1p25 : 0x1p54)), x);
  Value* k = log_exponent(v, scaled);
  Value* m = v.from_bits(b.CreateSub(v.bits(scaled), b.CreateShl(k, v.integer(k, f32 ? 23 : 52))));
  k = b.CreateAdd(k, v.select(tiny, v.integer(k, f32 ? -25 : -54), v.integer(k, 0)));
  return log_or_special(v, log_of_parts(v, k, b.CreateFSub(m, v.real(x, 1))), x, 0);
}

// 1 + x gives k. f = (1 + x) / 2^k - 1 comes from x itself, in one rounding, times 16 so that 2^-k
// is a normal number for every k.
Value* math_log1p(Values& v, Value* x) {
  auto& b = v.b;
  const bool f32 = is_f32(x);
  Value* k = log_exponent(v, b.CreateFAdd(x, v.real(x, 1)));
  Value* sixteen = v.real(x, 16);
  Value* scale = v.from_bits(
      b.CreateSub(v.bits(sixteen), b.CreateShl(k, v.integer(k, f32 ? 23 : 52))));
  Value* f = b.CreateFMul(v.fma(x, scale, b.CreateFSub(scale, sixteen)), v.real(x, 0.0625));
  return log_or_special(v, log_of_parts(v, k, f), x, -1);
}

Value* math_pow(Values& v, Value* x, Value* y) {
  auto& b = v.b;
  v.unify(x, y);
  if (is_f32(x)) return v.narrow(math_pow(v, v.widen(x), v.widen(y)));
  Value* one = v.real(x, 1);
  Value* magnitude = v.abs(x);
  Value* power = math_exp(v, b.CreateFMul(y, math_log(v, magnitude)));
  auto whole = [&](Value* a) { return b.CreateFCmpOEQ(v.trunc(a), a); };
  Value* integer = whole(y);
  Value* odd = b.CreateAnd(integer, b.CreateNot(whole(b.CreateFMul(y, v.real(y, 0.5)))));
  Value* undefined = b.CreateAnd(b.CreateAnd(v.less(x, v.real(x, 0)), b.CreateNot(integer)),
                                 v.less(magnitude, v.real(x, kInfinity)));
  power = v.select(undefined, v.real(x, std::numeric_limits<double>::quiet_NaN()), power);
  power = v.select(odd, v.copysign(power, x), power);
  Value* unit = b.CreateAnd(b.CreateFCmpOEQ(magnitude, one),
                            b.CreateFCmpOEQ(v.abs(y), v.real(y, kInfinity)));
  unit = b.CreateOr(unit, b.CreateOr(b.CreateFCmpOEQ(x, one), b.CreateFCmpOEQ(y, v.real(y, 0))));
  return v.select(unit, one, power);
}

// Long division: quotients of at most 24 bits are subtracted exactly until the rest is below |y|.
// With y in two halves every product is exact. A quotient that is slightly too small costs one more
// round. Much larger rests are first reduced below y times a power of two, so that no quotient
// overflows.
Value* math_fmod(Values& v, Value* x, Value* y) {
  auto& b = v.b;
  v.unify(x, y);
  if (is_f32(x)) return v.narrow(math_fmod(v, v.widen(x), v.widen(y)));
  Value* divisor = v.abs(y);
  // y may be infinite.
  Value* valid = b.CreateAnd(v.less(v.abs(x), v.real(x, kInfinity)), v.less(v.real(x, 0), divisor));
  auto high_bits = [&](Value* a, int64_t mask) {
    return v.from_bits(b.CreateAnd(v.bits(a), v.integer(v.bits(a), mask)));
  };
  Value* state[] = {v.abs(x)};
  loop_while(
      v, state, [&] { return b.CreateAnd(valid, b.CreateFCmpOGE(state[0], divisor)); },
      [&] {
        Value* rest = state[0];
        Value* active = b.CreateFCmpOGE(rest, divisor);
        Value* unit = divisor;
        for (int i = 0; i < 2; ++i) {
          Value* larger = b.CreateFMul(unit, v.real(x, 0x1p900));
          unit = v.select(b.CreateFCmpOGE(rest, larger), larger, unit);
        }
        Value* unit_high = high_bits(unit, ~((int64_t{1} << 26) - 1));
        Value* quotient = b.CreateFMul(b.CreateFDiv(rest, unit), v.real(x, 1 - 0x1p-50));
        quotient = v.select(v.less(quotient, v.real(x, 1)), v.real(x, 1), quotient);
        quotient = v.select(v.less(quotient, v.real(x, 0x1p24)), v.trunc(quotient),
                            high_bits(quotient, ~((int64_t{1} << 29) - 1)));
        Value* less = b.CreateFSub(rest, b.CreateFMul(quotient, unit_high));
        less = b.CreateFSub(less, b.CreateFMul(quotient, b.CreateFSub(unit, unit_high)));
        state[0] = v.select(active, less, rest);
      });
  return v.select(valid, v.copysign(state[0], x),
                  b.CreateFMul(v.real(x, std::numeric_limits<double>::quiet_NaN()), x));
}

Value* math_ipow(Values& v, Value* x, Value* y, bool is_signed) {
  auto& b = v.b;
  v.unify(x, y);
  Value* one = v.integer(x, 1);
  Value* state[] = {one, x, y};
  Value* negative = is_signed ? b.CreateICmpSLT(y, v.integer(y, 0))
                              : v.splat(b.getFalse(), Values::lanes(y));
  loop_while(
      v, state,
      [&] { return b.CreateAnd(b.CreateICmpNE(state[2], v.integer(y, 0)), b.CreateNot(negative)); },
      [&] {
        Value* odd = b.CreateICmpNE(b.CreateAnd(state[2], v.integer(y, 1)), v.integer(y, 0));
        state[0] = v.select(odd, b.CreateMul(state[0], state[1]), state[0]);
        state[1] = b.CreateMul(state[1], state[1]);
        state[2] = b.CreateLShr(state[2], v.integer(y, 1));
      });
  if (!is_signed) return state[0];
  Value* odd = b.CreateICmpNE(b.CreateAnd(y, v.integer(y, 1)), v.integer(y, 0));
  Value* unit = v.select(b.CreateICmpEQ(x, v.integer(x, -1)), v.select(odd, v.integer(x, -1), one),
                         v.integer(x, 0));
  unit = v.select(b.CreateICmpEQ(x, one), one, unit);
  return v.select(negative, unit, state[0]);
}
}  // namespace tw::codegen
