#include "backends/llvm/values.h"

#include <llvm/IR/PatternMatch.h>

#include <bit>
#include <limits>

#include "backends/llvm/math.h"
#include "ir/storage_types.h"

namespace tw::codegen {

using llvm::Type;

Values::Values(llvm::LLVMContext& context, const CpuTraits& cpu, bool fast)
    : b(context), traits(cpu), fast_math(fast) {}

// Affects arithmetic only (docs/reference/targets.md): comparisons, selects and functions treat NaN
// and infinity as usual. It never allows contraction or reassociation: multiply-adds are explicit,
// and the schedule decides the order of sums.
Value* Values::relaxed(Value* result) {
  auto* instruction = llvm::dyn_cast<llvm::Instruction>(result);
  if (!fast_math || !instruction || !llvm::isa<llvm::FPMathOperator>(instruction)) return result;
  llvm::FastMathFlags flags;
  flags.setNoNaNs();
  flags.setNoSignedZeros();
  flags.setAllowReciprocal();
  instruction->setFastMathFlags(flags);
  return result;
}

Type* Values::compute_type(DType t) {
  switch (t) {
    case DType::f32:
    case DType::f16:
    case DType::bf16: return b.getFloatTy();
    case DType::f64: return b.getDoubleTy();
    case DType::i8:
    case DType::u8: return b.getInt8Ty();
    case DType::i16:
    case DType::u16: return b.getInt16Ty();
    case DType::i32:
    case DType::u32: return b.getInt32Ty();
    case DType::i64:
    case DType::u64:
    case DType::string: return b.getInt64Ty();
    case DType::boolean: return b.getInt1Ty();
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: return b.getFloatTy();
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return b.getInt8Ty();
  }
  TW_UNREACHABLE("bad element type");
}

Type* Values::storage_type(DType t) {
  if (t == DType::f16 || t == DType::bf16) return b.getInt16Ty();
  if (t == DType::boolean || is_small_float(t)) return b.getInt8Ty();
  return compute_type(t);
}

int Values::lanes(Value* v) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return type ? static_cast<int>(type->getNumElements()) : 0;
}

Type* Values::with_lanes(Type* element, int lanes) {
  return lanes ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes)) : element;
}

Value* Values::splat(Value* v, int count) {
  if (!count || lanes(v)) return v;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(v))
    return llvm::ConstantVector::getSplat(
        llvm::ElementCount::getFixed(static_cast<unsigned>(count)), c);
  return b.CreateVectorSplat(static_cast<unsigned>(count), v);
}

void Values::unify(Value*& x, Value*& y) {
  int count = std::max(lanes(x), lanes(y));
  x = splat(x, count);
  y = splat(y, count);
}

Value* Values::real(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}
Value* Values::integer(Value* like, int64_t value) {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(value), true, true);
}

Value* Values::fma(Value* x, Value* y, Value* z) {
  unify(x, y);
  unify(x, z);
  unify(y, z);
  if (!traits.fma) return b.CreateFAdd(b.CreateFMul(x, y), z);
  return b.CreateIntrinsic(x->getType(), llvm::Intrinsic::fma, {x, y, z});
}

bool is_all_true(const Value* v) {
  const auto* c = llvm::dyn_cast_or_null<llvm::Constant>(v);
  return c && c->isAllOnesValue();
}
bool is_all_false(const Value* v) {
  const auto* c = llvm::dyn_cast_or_null<llvm::Constant>(v);
  return c && c->isNullValue();
}

Value* Values::select(Value* condition, Value* x, Value* y) {
  if (is_all_true(condition)) return lanes(condition) ? splat(x, lanes(condition)) : x;
  if (is_all_false(condition)) return lanes(condition) ? splat(y, lanes(condition)) : y;
  unify(x, y);
  if (lanes(condition)) {
    x = splat(x, lanes(condition));
    y = splat(y, lanes(condition));
  }
  return b.CreateSelect(condition, x, y);
}

Value* Values::logical_and(Value* x, Value* y) {
  if (!x || !y) return x ? x : y;
  unify(x, y);
  if (is_all_true(x) || is_all_false(y)) return y;
  if (is_all_true(y) || is_all_false(x)) return x;
  return b.CreateAnd(x, y);
}

Value* Values::logical_not(Value* x) { return b.CreateNot(x); }

Value* Values::less(Value* x, Value* y) {
  unify(x, y);
  return b.CreateFCmpOLT(x, y);
}

namespace {

const llvm::APFloat* float_constant(Value* v) {  // null: not a constant
  const llvm::APFloat* number = nullptr;
  return llvm::PatternMatch::match(v, llvm::PatternMatch::m_APFloat(number)) ? number : nullptr;
}
bool is_number(Value* v) {
  const llvm::APFloat* known = float_constant(v);
  return known && !known->isNaN();
}
// Beside such a number, a subnormal one may count as 0.
bool is_normal(Value* v) {
  const llvm::APFloat* known = float_constant(v);
  return known && known->isNormal();
}

}  // namespace

// x86 has an instruction that returns its second operand when one of them is a NaN. So a constant
// becomes the first operand; otherwise the first operand is tested for NaN. Either of two zeros may
// be returned.
Value* Values::extreme(bool larger, Value* x, Value* y) {
  unify(x, y);
  const auto bits_of_one = static_cast<int>(x->getType()->getScalarSizeInBits());
  if (bits_of_one <= traits.maximum_bits || (traits.scalar_maximum && !lanes(x))) {
    auto* result = llvm::cast<llvm::Instruction>(b.CreateIntrinsic(
        x->getType(), larger ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, {x, y}));
    result->setHasNoSignedZeros(true);
    return result;
  }
  if (is_number(y)) std::swap(x, y);
  Value* second = select(larger ? less(y, x) : less(x, y), x, y);
  if (is_number(x)) return second;
  Value* nan = b.CreateFCmpUNO(x, x);
  if (!lanes(x) || !traits.nan_by_mask) return select(nan, x, second);
  return from_bits(select(nan, integer(bits(x), -1), bits(second)));  // all ones are a NaN
}

// True for vectors of ARMv7 and of MVE, which treat subnormal numbers as 0.
bool Values::flushes(Value* x) const {
  return traits.flushes_subnormals && lanes(x) && x->getType()->getScalarType()->isFloatTy();
}

// The number as an integer that grows with it; both zeros give 0
Value* Values::ordered(Value* x) {
  Value* all = bits(x);
  Value* sign = b.CreateAShr(all, integer(all, 31));
  return b.CreateSub(b.CreateXor(b.CreateAnd(all, integer(all, INT32_MAX)), sign), sign);
}

Value* Values::compare(BinaryOp op, Value* x, Value* y) {
  unify(x, y);
  if (flushes(x) && !is_normal(x) && !is_normal(y)) {
    Value *a = ordered(x), *c = ordered(y);
    if (op == BinaryOp::ne) return b.CreateOr(b.CreateFCmpUNO(x, y), b.CreateICmpNE(a, c));
    Value* holds = op == BinaryOp::lt   ? b.CreateICmpSLT(a, c)
                   : op == BinaryOp::le ? b.CreateICmpSLE(a, c)
                                        : b.CreateICmpEQ(a, c);
    return b.CreateAnd(b.CreateFCmpORD(x, y), holds);
  }
  if (op == BinaryOp::lt) return less(x, y);
  if (op == BinaryOp::le) return b.CreateFCmpOLE(x, y);
  return op == BinaryOp::eq ? b.CreateFCmpOEQ(x, y) : b.CreateFCmpUNE(x, y);
}

Value* Values::abs(Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
Value* Values::copysign(Value* magnitude, Value* sign) {
  unify(magnitude, sign);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}
Value* Values::sqrt(Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }

// Rounds |x| below 2^23 (2^52) to the nearest integer: the last bit of the sum is worth 1. Larger
// values are integers already.
Value* Values::round_by_magic(Value* magnitude) {
  double magic = magnitude->getType()->getScalarType()->isFloatTy() ? 0x1p23 : 0x1p52;
  Value* rounded = b.CreateFSub(b.CreateFAdd(magnitude, real(magnitude, magic)),
                                real(magnitude, magic));
  return select(less(magnitude, real(magnitude, magic)), rounded, magnitude);
}

bool Values::rounds(Value* x) const {
  return static_cast<int>(x->getType()->getScalarSizeInBits()) <= traits.rounding_bits;
}

Value* Values::round_even(Value* x) {
  if (rounds(x)) return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  return copysign(round_by_magic(abs(x)), x);
}
Value* Values::trunc(Value* x) {
  if (rounds(x)) return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
  Value* a = abs(x);
  Value* r = round_by_magic(a);
  return copysign(select(less(a, r), b.CreateFSub(r, real(r, 1)), r), x);
}
Value* Values::floor(Value* x) {
  if (rounds(x)) return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  Value* r = round_even(x);
  return copysign(select(less(x, r), b.CreateFSub(r, real(r, 1)), r), x);
}
Value* Values::ceil(Value* x) {
  if (rounds(x)) return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
  Value* r = round_even(x);
  return copysign(select(less(r, x), b.CreateFAdd(r, real(r, 1)), r), x);
}

Value* Values::bits(Value* x) {
  return b.CreateBitCast(x, with_lanes(b.getIntNTy(x->getType()->getScalarSizeInBits()), lanes(x)));
}
Value* Values::from_bits(Value* x) {
  Type* element = x->getType()->getScalarSizeInBits() == 64 ? b.getDoubleTy() : b.getFloatTy();
  return b.CreateBitCast(x, with_lanes(element, lanes(x)));
}

Value* Values::round_to_tf32(Value* x) {
  Value* half_up = b.CreateAdd(bits(x), integer(bits(x), 0x1000));
  return select(b.CreateFCmpUNO(x, x), x,
                from_bits(b.CreateAnd(half_up, integer(half_up, ~int64_t{0x1fff}))));
}

Value* Values::unary(UnaryOp op, DType t, Value* x) {
  bool real_type = is_float(t);
  switch (op) {
    case UnaryOp::neg: return real_type ? b.CreateFNeg(x) : b.CreateNeg(x);
    case UnaryOp::abs:
      if (real_type) return abs(x);
      return is_signed_int(t) ? select(b.CreateICmpSLT(x, integer(x, 0)), b.CreateNeg(x), x) : x;
    case UnaryOp::sign: {
      if (!real_type) {
        Value* positive = select(
            is_signed_int(t) ? b.CreateICmpSGT(x, integer(x, 0)) : b.CreateICmpNE(x, integer(x, 0)),
            integer(x, 1), integer(x, 0));
        return is_signed_int(t)
                   ? select(b.CreateICmpSLT(x, integer(x, 0)), integer(x, -1), positive)
                   : positive;
      }
      return select(compare(BinaryOp::lt, real(x, 0), x), real(x, 1),
                    select(compare(BinaryOp::lt, x, real(x, 0)), real(x, -1), x));
    }
    case UnaryOp::floor: return real_type ? floor(x) : x;
    case UnaryOp::ceil: return real_type ? ceil(x) : x;
    case UnaryOp::round: return real_type ? round_even(x) : x;
    case UnaryOp::trunc: return real_type ? trunc(x) : x;
    case UnaryOp::tf32: return round_to_tf32(x);
    case UnaryOp::is_nan: return b.CreateFCmpUNO(x, x);
    case UnaryOp::is_inf:
      return b.CreateFCmpOEQ(abs(x), real(x, std::numeric_limits<double>::infinity()));
    case UnaryOp::logical_not:
    case UnaryOp::bit_not: return b.CreateNot(x);
    case UnaryOp::sqrt: return sqrt(x);
    case UnaryOp::rsqrt: return relaxed(b.CreateFDiv(real(x, 1), sqrt(x)));
    case UnaryOp::exp: return math_exp(*this, x);
    case UnaryOp::exp2: return math_exp2(*this, x);
    case UnaryOp::expm1: return math_expm1(*this, x);
    case UnaryOp::log: return math_log(*this, x);
    case UnaryOp::log1p: return math_log1p(*this, x);
    case UnaryOp::tanh: return math_tanh(*this, x);
    case UnaryOp::erf: return math_erf(*this, x);
    case UnaryOp::normal_cdf: return math_normal_cdf(*this, x);
    case UnaryOp::sigmoid: return math_sigmoid(*this, x);
    case UnaryOp::sin: return math_sin(*this, x);
    case UnaryOp::cos: return math_cos(*this, x);
    case UnaryOp::tan: return math_tan(*this, x);
    case UnaryOp::asin: return math_asin(*this, x);
    case UnaryOp::acos: return math_acos(*this, x);
    case UnaryOp::atan: return math_atan(*this, x);
  }
  TW_UNREACHABLE("a unary operator");
}

// Division never traps: a divisor of 0 acts as 1, and the smallest integer divided by -1 wraps.
Value* Values::integer_divide(BinaryOp op, DType t, Value* x, Value* y) {
  bool is_signed = is_signed_int(t);
  const auto* constant = llvm::dyn_cast<llvm::Constant>(y);
  const llvm::APInt* divisor = nullptr;
  if (constant)
    if (auto* c = llvm::dyn_cast_or_null<llvm::ConstantInt>(lanes(y) ? constant->getSplatValue()
                                                                     : constant))
      divisor = &c->getValue();
  bool positive = divisor && divisor->isStrictlyPositive();
  Value* minus_one = nullptr;
  if (!positive) {
    y = select(b.CreateICmpEQ(y, integer(y, 0)), integer(y, 1), y);
    if (is_signed) {
      minus_one = b.CreateICmpEQ(y, integer(y, -1));
      y = select(minus_one, integer(y, 1), y);
    }
  }
  bool remainder = op == BinaryOp::mod || op == BinaryOp::floor_mod;
  if (!is_signed) return remainder ? b.CreateURem(x, y) : b.CreateUDiv(x, y);
  if (positive && divisor->isPowerOf2() && op == BinaryOp::floor_div)
    return b.CreateAShr(x, integer(x, divisor->logBase2()));
  if (positive && divisor->isPowerOf2() && op == BinaryOp::floor_mod)
    return b.CreateAnd(x, integer(x, divisor->getSExtValue() - 1));
  Value* quotient = b.CreateSDiv(x, y);
  Value* rest = b.CreateSub(x, b.CreateMul(quotient, y));
  if (op == BinaryOp::floor_div || op == BinaryOp::floor_mod) {
    Value* opposite = b.CreateICmpSLT(b.CreateXor(rest, y), integer(x, 0));
    Value* below = logical_and(b.CreateICmpNE(rest, integer(x, 0)), opposite);
    quotient = select(below, b.CreateSub(quotient, integer(x, 1)), quotient);
    rest = select(below, b.CreateAdd(rest, y), rest);
  }
  if (minus_one) {
    quotient = select(minus_one, b.CreateNeg(x), quotient);
    rest = select(minus_one, integer(x, 0), rest);
  }
  return remainder ? rest : quotient;
}

Value* Values::shift(BinaryOp op, bool is_signed, Value* x, Value* y) {
  int64_t width = x->getType()->getScalarSizeInBits();
  Value* inside = b.CreateICmpULT(y, integer(y, width));
  if (op == BinaryOp::shr && is_signed)
    return b.CreateAShr(x, select(inside, y, integer(y, width - 1)));
  Value* amount = select(inside, y, integer(y, 0));
  return select(inside, op == BinaryOp::shl ? b.CreateShl(x, amount) : b.CreateLShr(x, amount),
                integer(x, 0));
}

Value* Values::binary(BinaryOp op, DType t, Value* x, Value* y) {
  unify(x, y);
  bool real_type = is_float(t), is_signed = is_signed_int(t);
  switch (op) {
    case BinaryOp::add:
      return real_type             ? relaxed(b.CreateFAdd(x, y))
             : t == DType::boolean ? b.CreateOr(x, y)
                                   : b.CreateAdd(x, y);
    case BinaryOp::sub: return real_type ? relaxed(b.CreateFSub(x, y)) : b.CreateSub(x, y);
    case BinaryOp::mul: return real_type ? relaxed(b.CreateFMul(x, y)) : b.CreateMul(x, y);
    case BinaryOp::div:
      return real_type ? relaxed(b.CreateFDiv(x, y)) : integer_divide(op, t, x, y);
    case BinaryOp::floor_div:
      return real_type ? floor(b.CreateFDiv(x, y)) : integer_divide(op, t, x, y);
    case BinaryOp::mod: return real_type ? math_fmod(*this, x, y) : integer_divide(op, t, x, y);
    case BinaryOp::floor_mod: {
      if (!real_type) return integer_divide(op, t, x, y);
      Value* r = math_fmod(*this, x, y);
      Value* wrong = b.CreateAnd(b.CreateFCmpONE(r, real(r, 0)),
                                 b.CreateXor(less(r, real(r, 0)), less(y, real(y, 0))));
      return select(wrong, b.CreateFAdd(r, y), r);
    }
    case BinaryOp::min:
      if (real_type) return extreme(false, x, y);
      return select(is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y), x, y);
    case BinaryOp::max:
      if (real_type) return extreme(true, x, y);
      return select(is_signed ? b.CreateICmpSGT(x, y) : b.CreateICmpUGT(x, y), x, y);
    case BinaryOp::pow:
      return real_type ? math_pow(*this, x, y) : math_ipow(*this, x, y, is_signed);
    case BinaryOp::lt:
      if (real_type) return compare(op, x, y);
      return is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
    case BinaryOp::le:
      if (real_type) return compare(op, x, y);
      return is_signed ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
    case BinaryOp::eq: return real_type ? compare(op, x, y) : b.CreateICmpEQ(x, y);
    case BinaryOp::ne: return real_type ? compare(op, x, y) : b.CreateICmpNE(x, y);
    case BinaryOp::logical_and: return logical_and(x, y);
    case BinaryOp::bit_and: return b.CreateAnd(x, y);
    case BinaryOp::logical_or:
    case BinaryOp::bit_or: return b.CreateOr(x, y);
    case BinaryOp::logical_xor:
    case BinaryOp::bit_xor: return b.CreateXor(x, y);
    case BinaryOp::shl:
    case BinaryOp::shr: return shift(op, is_signed, x, y);
  }
  TW_UNREACHABLE("a binary operator");
}

Value* Values::combine(Combiner combiner, DType t, Value* old, Value* value) {
  switch (combiner) {
    case Combiner::none: return value;
    case Combiner::add: return binary(BinaryOp::add, t, old, value);
    case Combiner::mul: return binary(BinaryOp::mul, t, old, value);
    // The new value is the one tested for NaN, so that the next step need not wait for the test.
    case Combiner::min: return binary(BinaryOp::min, t, value, old);
    case Combiner::max: return binary(BinaryOp::max, t, value, old);
  }
  TW_UNREACHABLE("a combiner");
}

Value* Values::combine_numbers(Combiner combiner, Value* old, Value* value) {
  unify(old, value);
  return select(combiner == Combiner::max ? less(old, value) : less(value, old), value, old);
}

Value* Values::identity(Combiner combiner, DType t) {
  Type* type = compute_type(t);
  bool largest = combiner == Combiner::min;
  if (combiner == Combiner::add || combiner == Combiner::none)
    return llvm::Constant::getNullValue(type);
  if (is_float(t)) {
    if (combiner == Combiner::mul) return llvm::ConstantFP::get(type, 1.0);
    return llvm::ConstantFP::getInfinity(type, !largest);
  }
  unsigned width = type->getIntegerBitWidth();
  if (combiner == Combiner::mul) return llvm::ConstantInt::get(type, 1);
  if (is_signed_int(t))
    return llvm::ConstantInt::get(type, largest ? llvm::APInt::getSignedMaxValue(width)
                                                : llvm::APInt::getSignedMinValue(width));
  return llvm::ConstantInt::get(
      type, largest ? llvm::APInt::getMaxValue(width) : llvm::APInt::getMinValue(width));
}

Value* Values::horizontal(Combiner combiner, DType t, Value* v, bool numbers) {
  int count = lanes(v), whole = static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
  std::vector<int> mask(static_cast<size_t>(whole));
  for (int i = 0; i < whole; ++i) mask[static_cast<size_t>(i)] = i < count ? i : count;
  if (whole != count) v = shuffle(v, splat(identity(combiner, t), count), mask);
  for (; whole > 1; whole /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < whole / 2; ++i) low.push_back(i), high.push_back(i + whole / 2);
    Value *first = shuffle(v, v, low), *second = shuffle(v, v, high);
    v = numbers ? combine_numbers(combiner, first, second) : combine(combiner, t, first, second);
  }
  return b.CreateExtractElement(v, uint64_t{0});
}

Value* Values::branch(Value* condition, llvm::function_ref<Value*()> then,
                      llvm::function_ref<Value*()> otherwise) {
  if (is_all_true(condition)) return then();
  if (is_all_false(condition)) return otherwise();
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(b.getContext(), "then", f);
  auto* no = llvm::BasicBlock::Create(b.getContext(), "else", f);
  auto* join = llvm::BasicBlock::Create(b.getContext(), "join", f);
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  Value* x = then();
  yes = b.GetInsertBlock();
  b.SetInsertPoint(no);
  Value* y = otherwise();
  no = b.GetInsertBlock();
  if (x && lanes(x) != lanes(y)) {
    y = splat(y, lanes(x));
    b.SetInsertPoint(yes);
    x = splat(x, lanes(y));
  }
  b.SetInsertPoint(yes);
  b.CreateBr(join);
  b.SetInsertPoint(no);
  b.CreateBr(join);
  b.SetInsertPoint(join);
  if (!x) return nullptr;
  llvm::PHINode* phi = b.CreatePHI(x->getType(), 2);
  phi->addIncoming(x, yes);
  phi->addIncoming(y, no);
  return phi;
}
}  // namespace tw::codegen
