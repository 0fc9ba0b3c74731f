// Conversions between element types; f16 and bf16 by integer arithmetic where the cpu has no instruction, so no library call remains.
#include "backends/llvm/values.h"

namespace tw {

using llvm::Type;

Value* Values::narrow(Value* x) {
  Type* type = with_lanes(b.getFloatTy(), lanes(x));
  return b.CreateArithmeticFence(b.CreateFPTrunc(x, type), type);
}

// f16 (as i16) -> f32. The exponent's bias is changed by a multiplication, which makes subnormals right too.
Value* Values::half_to_float(Value* h) {
  int count = lanes(h);
  if (traits.half) return b.CreateFPExt(b.CreateBitCast(h, with_lanes(b.getHalfTy(), count)), with_lanes(b.getFloatTy(), count));
  Value* wide = b.CreateZExt(h, with_lanes(b.getInt32Ty(), count));
  Value* magnitude = b.CreateAnd(wide, integer(wide, 0x7fff));
  Value* sign = b.CreateShl(b.CreateAnd(wide, integer(wide, 0x8000)), integer(wide, 16));
  Value* shifted = b.CreateShl(magnitude, integer(wide, 13));
  Value* as_float = from_bits(shifted);
  Value* finite = bits(b.CreateFMul(as_float, real(as_float, 0x1p112)));
  Value* special = b.CreateOr(shifted, integer(wide, 0x7f800000));
  return from_bits(b.CreateOr(select(b.CreateICmpUGE(magnitude, integer(wide, 0x7c00)), special, finite), sign));
}

// f32 -> f16 (as i16), to nearest even.
Value* Values::float_to_half(Value* f) {
  int count = lanes(f);
  if (traits.half) return b.CreateBitCast(b.CreateFPTrunc(f, with_lanes(b.getHalfTy(), count)), with_lanes(b.getInt16Ty(), count));
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
  result = select(b.CreateICmpUGE(magnitude, integer(all, 0x477ff000)), integer(all, 0x7c00), result);
  result = select(b.CreateICmpUGT(magnitude, integer(all, 0x7f800000)), integer(all, 0x7e00), result);
  return b.CreateTrunc(b.CreateOr(result, sign), with_lanes(b.getInt16Ty(), count));
}

// f32 -> bf16 (as i16), to nearest even. The native instructions flush subnormals, so they are not used.
Value* Values::float_to_bfloat(Value* f) {
  Value* all = bits(f);
  Value* odd = b.CreateAnd(b.CreateLShr(all, integer(all, 16)), integer(all, 1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(all, integer(all, 0x7fff)), odd), integer(all, 16));
  Value* quiet = b.CreateOr(b.CreateLShr(all, integer(all, 16)), integer(all, 64));
  return b.CreateTrunc(select(b.CreateFCmpUNO(f, f), quiet, rounded), with_lanes(b.getInt16Ty(), lanes(f)));
}

Value* Values::to_storage(Value* x, DType t) {
  if (t == DType::f16) return float_to_half(x);
  if (t == DType::bf16) return float_to_bfloat(x);
  if (t == DType::boolean) return b.CreateZExt(x, with_lanes(b.getInt8Ty(), lanes(x)));
  return x;
}

Value* Values::from_storage(Value* x, DType t) {
  if (t == DType::f16) return half_to_float(x);
  if (t == DType::boolean) return b.CreateICmpNE(x, integer(x, 0));
  if (t != DType::bf16) return x;
  Value* wide = b.CreateZExt(x, with_lanes(b.getInt32Ty(), lanes(x)));
  return from_bits(b.CreateShl(wide, integer(wide, 16)));
}

// Truncates toward zero. Unsaturated: modulo 2^width where the value fits 64 (for narrow types 32) bits, else unspecified.
Value* Values::float_to_int(Value* x, DType to, bool saturate) {
  int count = lanes(x);
  Type* type = with_lanes(compute_type(to), count);
  bool is_signed = is_signed_int(to);
  if (saturate) {
    auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {type, x->getType()}, {x});
  }
  int width = dtype_bytes(to) * 8;
  if (width == 64 && !is_signed) {
    // Negative values wrap: through the signed conversion below 2^63.
    Value* large = b.CreateFCmpOGE(x, real(x, 0x1p63));
    Value* low = b.CreateFPToSI(select(large, b.CreateFSub(x, real(x, 0x1p63)), x), type);
    return b.CreateFreeze(b.CreateXor(low, select(large, integer(low, INT64_MIN), integer(low, 0))));
  }
  Type* wide = width == 64 || (width == 32 && !is_signed) ? b.getInt64Ty() : b.getInt32Ty();
  return b.CreateTrunc(b.CreateFreeze(b.CreateFPToSI(x, with_lanes(wide, count))), type);
}

Value* Values::convert(Value* x, DType from, DType to, bool saturate) {
  if (from == to) return x;
  Type* type = with_lanes(compute_type(to), lanes(x));
  if (to == DType::boolean) return is_float(from) ? b.CreateFCmpUNE(x, real(x, 0)) : b.CreateICmpNE(x, integer(x, 0));
  if (from == DType::boolean) return is_float(to) ? select(x, llvm::ConstantFP::get(type, 1), llvm::ConstantFP::get(type, 0)) : b.CreateZExt(x, type);
  if (is_float(from) && is_float(to)) {
    if (to == DType::f64) return b.CreateFPExt(x, type);
    if (from == DType::f64) x = narrow(x);
    return to == DType::f32 ? x : from_storage(to_storage(x, to), to);
  }
  if (is_float(from)) return float_to_int(x, to, saturate);
  if (is_float(to)) {
    Value* real_value = is_signed_int(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
    return to == DType::f16 || to == DType::bf16 ? from_storage(to_storage(real_value, to), to) : real_value;
  }
  if (saturate) {
    // Clamp in the wider type; a signed source of an unsigned type is clamped at 0 first.
    unsigned from_bits_count = x->getType()->getScalarSizeInBits(), to_bits = type->getScalarSizeInBits();
    bool from_signed = is_signed_int(from), to_signed = is_signed_int(to);
    if (from_signed && !to_signed) x = select(b.CreateICmpSLT(x, integer(x, 0)), integer(x, 0), x), from_signed = false;
    unsigned value_bits = from_bits_count - (from_signed ? 1 : 0), limit_bits = to_bits - (to_signed ? 1 : 0);
    if (value_bits > limit_bits) {
      auto* high = llvm::ConstantInt::get(x->getType(), llvm::APInt::getLowBitsSet(from_bits_count, limit_bits));
      auto* low = llvm::ConstantInt::get(x->getType(), llvm::APInt::getHighBitsSet(from_bits_count, from_bits_count - limit_bits));
      x = select(from_signed ? b.CreateICmpSGT(x, high) : b.CreateICmpUGT(x, high), high, x);
      if (from_signed) x = select(b.CreateICmpSLT(x, low), low, x);
    }
  }
  return is_signed_int(from) && !(saturate && !is_signed_int(to)) ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}
}  // namespace tw
