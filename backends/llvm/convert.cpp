// Conversions between element types. f16 and bf16 use integer arithmetic where the cpu has no
// instruction, so that no library call remains.
#include <llvm/IR/PatternMatch.h>

#include <cmath>

#include "backends/llvm/values.h"
#include "ir/storage_types.h"

namespace tw::codegen {

using llvm::Type;

Value* Values::widen(Value* x) {
  if (traits.no_half_to_double && lanes(x)) x = b.CreateArithmeticFence(x, x->getType());
  return b.CreateFPExt(x, with_lanes(b.getDoubleTy(), lanes(x)));
}

Value* Values::narrow(Value* x) {
  Type* type = with_lanes(b.getFloatTy(), lanes(x));
  return b.CreateArithmeticFence(b.CreateFPTrunc(x, type), type);
}

Value* Values::unscaled(Value* x) {
  return traits.wrong_fixed_point ? b.CreateArithmeticFence(x, x->getType()) : x;
}

// The f32 of a smaller float's bits, which lie in place: the exponent begins at bit 23, and there
// is no sign. Neither inputs nor results are subnormal in f32, because NEON treats those as 0.
Value* Values::rebias(Value* shifted, int bias) {
  Value* normal = b.CreateAdd(shifted, integer(shifted, int64_t{127 - bias} << 23));
  // A subnormal is the excess of a float over the smallest normal number.
  Value* least = integer(shifted, int64_t{128 - bias} << 23);
  Value* subnormal = bits(b.CreateFSub(from_bits(b.CreateAdd(shifted, least)), from_bits(least)));
  return select(b.CreateICmpULT(shifted, integer(shifted, 1 << 23)), subnormal, normal);
}

// Converts f16 (as i16) to f32.
Value* Values::half_to_float(Value* h) {
  int count = lanes(h);
  if (traits.half)
    return b.CreateFPExt(b.CreateBitCast(h, with_lanes(b.getHalfTy(), count)),
                         with_lanes(b.getFloatTy(), count));
  Value* wide = b.CreateZExt(h, with_lanes(b.getInt32Ty(), count));
  Value* magnitude = b.CreateAnd(wide, integer(wide, 0x7fff));
  Value* sign = b.CreateShl(b.CreateAnd(wide, integer(wide, 0x8000)), integer(wide, 16));
  Value* shifted = b.CreateShl(magnitude, integer(wide, 13));
  Value* finite = rebias(shifted, 15);
  Value* special = b.CreateOr(shifted, integer(wide, 0x7f800000));
  return from_bits(
      b.CreateOr(select(b.CreateICmpUGE(magnitude, integer(wide, 0x7c00)), special, finite), sign));
}

// Converts f32 to f16 (as i16), rounding to nearest even.
Value* Values::float_to_half(Value* f) {
  int count = lanes(f);
  if (traits.half)
    return b.CreateBitCast(b.CreateFPTrunc(f, with_lanes(b.getHalfTy(), count)),
                           with_lanes(b.getInt16Ty(), count));
  Value* all = bits(f);
  Value* magnitude = b.CreateAnd(all, integer(all, 0x7fffffff));
  Value* sign = b.CreateAnd(b.CreateLShr(all, integer(all, 16)), integer(all, 0x8000));
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, integer(all, 13)), integer(all, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, integer(all, 0xfff)), odd);
  Value* normal = b.CreateLShr(b.CreateSub(rounded, integer(all, 0x38000000)), integer(all, 13));
  // A subnormal half counts units of 2^-24, the last bit of a float in [0.5, 1).
  Value* half = real(f, 0.5);
  Value* subnormal = b.CreateSub(bits(b.CreateFAdd(from_bits(magnitude), half)), bits(half));
  Value* result = select(b.CreateICmpULT(magnitude, integer(all, 0x38800000)), subnormal, normal);
  result = select(b.CreateICmpUGE(magnitude, integer(all, 0x477ff000)), integer(all, 0x7c00),
                  result);
  result = select(b.CreateICmpUGT(magnitude, integer(all, 0x7f800000)), integer(all, 0x7e00),
                  result);
  return b.CreateTrunc(b.CreateOr(result, sign), with_lanes(b.getInt16Ty(), count));
}

// Converts f32 to bf16 (as i16), rounding to nearest even. The native instructions flush
// subnormals, so they are not used.
Value* Values::float_to_bfloat(Value* f) {
  using namespace llvm::PatternMatch;
  Value* already = nullptr;  // bits that an earlier operator has rounded
  if (match(f, m_BitCast(m_Shl(m_ZExt(m_Value(already)), m_SpecificInt(16)))) &&
      already->getType()->getScalarSizeInBits() == 16)
    return already;
  Value* all = bits(f);
  Value* odd = b.CreateAnd(b.CreateLShr(all, integer(all, 16)), integer(all, 1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(all, integer(all, 0x7fff)), odd),
                                integer(all, 16));
  Value* quiet = b.CreateOr(b.CreateLShr(all, integer(all, 16)), integer(all, 64));
  return b.CreateTrunc(select(b.CreateFCmpUNO(f, f), quiet, rounded),
                       with_lanes(b.getInt16Ty(), lanes(f)));
}

// Converts a small float, as i8, to f32.
Value* Values::small_to_float(Value* x, DType t) {
  const SmallFloat& f = small_float(t);
  Value* wide = b.CreateZExt(x, with_lanes(b.getInt32Ty(), lanes(x)));
  if (t == DType::f8e8m0) {
    Value* power = b.CreateShl(wide, integer(wide, 23));
    // 2^-127
    power = select(b.CreateICmpEQ(wide, integer(wide, 0)), integer(wide, 0x400000), power);
    return from_bits(
        select(b.CreateICmpEQ(wide, integer(wide, f.nan)), integer(wide, 0x7fc00000), power));
  }
  const int sign_bit = dtype_bits(t) - 1;
  Value* magnitude = b.CreateAnd(wide, integer(wide, (1 << sign_bit) - 1));
  Value* sign = b.CreateShl(b.CreateAnd(wide, integer(wide, 1 << sign_bit)),
                            integer(wide, 31 - sign_bit));
  Value* value = rebias(b.CreateShl(magnitude, integer(wide, 23 - f.mantissa_bits)), f.bias);
  if (f.one_zero) {
    value = select(b.CreateICmpEQ(wide, integer(wide, f.nan)), integer(wide, 0x7fc00000), value);
  } else if (t != DType::f4e2m1) {
    value = select(b.CreateICmpUGT(magnitude, integer(wide, f.largest)), integer(wide, 0x7fc00000),
                   value);
    if (f.overflow != f.nan)
      value = select(b.CreateICmpEQ(magnitude, integer(wide, f.overflow)),
                     integer(wide, 0x7f800000), value);
  }
  return from_bits(b.CreateOr(value, sign));
}

Value* Values::float_to_small(Value* x, DType t, bool saturate) {
  const SmallFloat& f = small_float(t);
  llvm::Type* narrow_type = with_lanes(b.getInt8Ty(), lanes(x));
  Value* all = bits(x);
  if (t == DType::f8e8m0) return b.CreateTrunc(b.CreateLShr(all, integer(all, 23)), narrow_type);
  const int shift = 23 - f.mantissa_bits;
  Value* magnitude = b.CreateAnd(all, integer(all, 0x7fffffff));
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, integer(all, shift)), integer(all, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, integer(all, (1 << (shift - 1)) - 1)), odd);
  Value* normal = b.CreateLShr(b.CreateSub(rounded, integer(all, int64_t{127 - f.bias} << 23)),
                               integer(all, shift));
  // The smallest subnormal is the last bit of a float in [magic, 2 magic).
  Value* magic = real(x, std::ldexp(1.0, 24 - f.bias - f.mantissa_bits));
  Value* subnormal = b.CreateSub(bits(b.CreateFAdd(from_bits(magnitude), magic)), bits(magic));
  Value* result = select(b.CreateICmpULT(magnitude, integer(all, int64_t{128 - f.bias} << 23)),
                         subnormal, normal);
  result = select(b.CreateICmpUGT(result, integer(all, f.largest)),
                  integer(all, saturate ? f.largest : f.overflow), result);
  result = select(b.CreateICmpUGT(magnitude, integer(all, 0x7f800000)),
                  integer(all, t == DType::f4e2m1 ? 0 : f.nan), result);
  Value* sign = b.CreateAnd(b.CreateLShr(all, integer(all, 32 - dtype_bits(t))),
                            integer(all, 1 << (dtype_bits(t) - 1)));
  if (t == DType::f4e2m1) sign = select(b.CreateFCmpUNO(x, x), integer(all, 8), sign);
  if (f.one_zero) sign = select(b.CreateICmpEQ(result, integer(all, 0)), integer(all, 0), sign);
  return b.CreateTrunc(b.CreateOr(result, sign), narrow_type);
}

Value* Values::wrap(Value* x, DType t) {
  const int unused = 8 - dtype_bits(t);
  if (is_unsigned_int(t)) return b.CreateAnd(x, integer(x, (1 << dtype_bits(t)) - 1));
  return b.CreateAShr(b.CreateShl(x, integer(x, unused)), integer(x, unused));
}

// Limits x to the values of `to`. The integer type of x contains all of them.
Value* Values::clamp(Value* x, bool is_signed, DType to) {
  Value *low = integer(x, lowest_of(to)), *high = integer(x, highest_of(to));
  x = select(is_signed ? b.CreateICmpSGT(x, high) : b.CreateICmpUGT(x, high), high, x);
  return is_signed ? select(b.CreateICmpSLT(x, low), low, x) : x;
}

Value* Values::to_storage(Value* x, DType t, bool saturate) {
  if (is_small_float(t)) return float_to_small(x, t, saturate);
  if (t == DType::f16) return float_to_half(x);
  if (t == DType::bf16) return float_to_bfloat(x);
  if (t == DType::boolean) return b.CreateZExt(x, with_lanes(b.getInt8Ty(), lanes(x)));
  return x;
}

Value* Values::from_storage(Value* x, DType t) {
  if (is_small_float(t)) return small_to_float(x, t);
  if (is_int(t) && dtype_bits(t) < 8) return wrap(x, t);  // a caller's byte may have any high bits
  if (t == DType::f16) return half_to_float(x);
  if (t == DType::boolean) return b.CreateICmpNE(x, integer(x, 0));
  if (t != DType::bf16) return x;
  Value* wide = b.CreateZExt(x, with_lanes(b.getInt32Ty(), lanes(x)));
  return from_bits(b.CreateShl(wide, integer(wide, 16)));
}

Value* Values::nearest_int(Value* x) {
  Type* type = with_lanes(b.getInt32Ty(), lanes(x));
  if (traits.nearest) return b.CreateIntrinsic(llvm::Intrinsic::lrint, {type, x->getType()}, {x});
  return b.CreateFPToSI(round_even(x), type);
}

// The limits are reduced by the offset. They are whole numbers, so rounding cannot leave them.
Value* Values::float_to_narrow(Value* x, DType to, bool rounded, int64_t offset) {
  const bool is_signed = is_signed_int(to);
  const int width = dtype_bits(to);
  const double least = is_signed ? -std::ldexp(1.0, width - 1) : 0,
               most = std::ldexp(1.0, is_signed ? width - 1 : width) - 1;
  Value* low = real(x, least - static_cast<double>(offset));
  Value* high = real(x, most - static_cast<double>(offset));
  Value* inside = select(b.CreateFCmpOGT(x, low), x, low);
  inside = select(b.CreateFCmpOLT(inside, high), inside, high);
  Value* number = rounded ? nearest_int(inside)
                          : b.CreateFPToSI(inside, with_lanes(b.getInt32Ty(), lanes(x)));
  if (offset != 0) number = b.CreateAdd(number, integer(number, offset));
  // NaN becomes 0, which for unsigned types is the lower limit already.
  if (is_signed) number = select(b.CreateFCmpUNO(x, x), integer(number, 0), number);
  return b.CreateTrunc(number, with_lanes(compute_type(to), lanes(x)));
}

// Truncates toward zero and saturates at the limits of `type`, which has 32 or 64 bits; NaN gives
// 0.
Value* Values::truncate(Value* x, Type* type, bool is_signed) {
  if (!lanes(x) || traits.saturates) {
    auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {type, x->getType()}, {x});
  }
  // LLVM would convert such vectors lane by lane.
  const int width = static_cast<int>(type->getScalarSizeInBits()) - (is_signed ? 1 : 0);
  Value *low = real(x, is_signed ? -std::ldexp(1.0, width) : 0),
        *high = real(x, std::ldexp(1.0, width));
  Value* inside = select(less(low, x), x, low);
  Value* number = b.CreateFreeze(is_signed ? b.CreateFPToSI(inside, type)
                                           : b.CreateFPToUI(inside, type));
  const auto bits = static_cast<unsigned>(type->getScalarSizeInBits());
  Value* most = llvm::ConstantInt::get(
      type, is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
  number = select(b.CreateFCmpOGE(inside, high), most, number);
  return is_signed ? select(b.CreateFCmpUNO(x, x), integer(number, 0), number) : number;
}

// Truncates toward zero; ir/scalar_ops.h defines the result for numbers beyond the type.
Value* Values::float_to_int(Value* x, DType to, bool saturate) {
  int count = lanes(x);
  Type* type = with_lanes(compute_type(to), count);
  bool is_signed = is_signed_int(to);
  int width = dtype_bits(to);
  // LLVM would convert such vectors lane by lane.
  if (saturate && count > 0 && width >= 8 && width <= 16) return float_to_narrow(x, to, false, 0);
  x = unscaled(x);
  if (saturate && width < 32) {
    auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    Value* result = b.CreateIntrinsic(id, {type, x->getType()}, {x});
    return width < 8 ? clamp(result, is_signed, to) : result;
  }
  if (saturate) return truncate(x, type, is_signed);
  if (width == 64 && !is_signed) {
    // Negative values wrap, because values below 2^63 go through the signed conversion.
    Value* large = b.CreateFCmpOGE(x, real(x, 0x1p63));
    Value* low = truncate(select(large, b.CreateFSub(x, real(x, 0x1p63)), x), type, true);
    return b.CreateXor(low, select(large, integer(low, INT64_MIN), integer(low, 0)));
  }
  Type* wide = width == 64 || (width == 32 && !is_signed) ? b.getInt64Ty() : b.getInt32Ty();
  Value* result = b.CreateTrunc(truncate(x, with_lanes(wide, count), true), type);
  return width < 8 ? wrap(result, to) : result;
}

Value* Values::convert(Value* x, DType from, DType to, bool saturate) {
  if (from == to) return x;
  Type* type = with_lanes(compute_type(to), lanes(x));
  if (to == DType::boolean)
    return is_float(from) ? compare(BinaryOp::ne, x, real(x, 0)) : b.CreateICmpNE(x, integer(x, 0));
  if (from == DType::boolean)
    return is_float(to) ? select(x, llvm::ConstantFP::get(type, 1), llvm::ConstantFP::get(type, 0))
                        : b.CreateZExt(x, type);
  if (is_float(from) && is_float(to)) {
    if (to == DType::f64) return widen(x);
    if (from == DType::f64) x = narrow(x);
    return to == DType::f32 ? x : from_storage(to_storage(x, to, saturate), to);
  }
  if (is_float(from)) return float_to_int(x, to, saturate);
  if (is_float(to)) {
    Value* real_value = unscaled(is_signed_int(from) ? b.CreateSIToFP(x, type)
                                                     : b.CreateUIToFP(x, type));
    return to == DType::f32 || to == DType::f64
               ? real_value
               : from_storage(to_storage(real_value, to, saturate), to);
  }
  const int to_bits = dtype_bits(to);
  if (saturate &&
      dtype_bits(from) - (is_signed_int(from) ? 1 : 0) > to_bits - (is_signed_int(to) ? 1 : 0))
    x = clamp(x, is_signed_int(from), to);
  else if (saturate && is_signed_int(from) && !is_signed_int(to))
    x = select(b.CreateICmpSLT(x, integer(x, 0)), integer(x, 0), x);
  Value* result = is_signed_int(from) ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
  return to_bits < 8 && !saturate ? wrap(result, to) : result;
}
}  // namespace tw::codegen
