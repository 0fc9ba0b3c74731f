// Arithmetic on scalars and on lanes alike. An operand that is the same for all lanes stays scalar
// until it meets a vector. Types of expressions: floats of 16 bits and less are f32, bool is i1,
// integers narrower than a byte are i8. In memory f16 and bf16 are i16; bool and types narrower
// than 16 bits are i8.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/traits.h"
#include "ir/kernel/kernel.h"

namespace tw::codegen {

using llvm::Value;

class Values {
 public:
  Values(llvm::LLVMContext& context, const CpuTraits& traits, bool fast_math);

  llvm::IRBuilder<> b;
  const CpuTraits& traits;
  const bool fast_math;

  llvm::Type* compute_type(DType t);
  llvm::Type* storage_type(DType t);
  static int lanes(Value* v);  // 0: a scalar
  // Makes lanes of a scalar. A vector with that many lanes stays as it is; lanes 0: unchanged.
  Value* splat(Value* v, int lanes);
  // Makes lanes of a scalar whose other operand is a vector.
  void unify(Value*& x, Value*& y);
  llvm::Type* with_lanes(llvm::Type* element, int lanes);

  Value* real(Value* like, double value);  // constant of the type of `like`
  Value* integer(Value* like, int64_t value);
  Value* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }

  // With fast_math: marks an arithmetic result that may be wrong for NaN and -0
  Value* relaxed(Value* result);
  // One instruction if the cpu has it, else a product and a sum
  Value* fma(Value* x, Value* y, Value* z);
  Value* select(Value* condition, Value* x, Value* y);
  Value* logical_and(Value* x, Value* y);  // i1; either may be null, which gives the other
  Value* logical_not(Value* x);
  Value* less(Value* x, Value* y);  // ordered float comparison
  // The larger or smaller of two floats; a NaN of either is returned
  Value* extreme(bool larger, Value* x, Value* y);
  // lt, le, eq and ne of floats, including subnormal ones
  Value* compare(BinaryOp op, Value* x, Value* y);
  Value* abs(Value* x);
  Value* copysign(Value* magnitude, Value* sign);
  Value* sqrt(Value* x);
  Value* floor(Value* x);
  Value* ceil(Value* x);
  Value* trunc(Value* x);
  Value* round_even(Value* x);
  Value* round_to_tf32(Value* x);  // f32 only
  Value* widen(Value* x);          // f32 -> f64
  // f64 -> f32, kept apart from a later rounding to f16, which would need a library call
  Value* narrow(Value* x);
  // A number converted to or from an integer, kept apart from a product by a power of two where
  // LLVM gets the combination wrong
  Value* unscaled(Value* x);
  Value* bits(Value* x);  // float -> integers with the same bits
  Value* from_bits(Value* x);

  Value* unary(UnaryOp op, DType t, Value* x);  // includes the functions of math.h
  Value* binary(BinaryOp op, DType t, Value* x, Value* y);
  // shl and shr; a shift by the width or more gives 0 (or the sign)
  Value* shift(BinaryOp op, bool is_signed, Value* x, Value* y);
  Value* combine(Combiner combiner, DType t, Value* old, Value* value);
  // Combines by min or max of floats; a NaN in `value` does not count
  Value* combine_numbers(Combiner combiner, Value* old, Value* value);
  // Combines all lanes into one scalar, pairwise; `numbers`: no lane is a NaN
  Value* horizontal(Combiner combiner, DType t, Value* lanes_value, bool numbers = false);
  Value* identity(Combiner combiner, DType t);
  Value* convert(Value* x, DType from, DType to, bool saturate);
  // The saturating cast to 8 or 16 bits; with `rounded` that of round(x) + offset, for an f32 x
  Value* float_to_narrow(Value* x, DType to, bool rounded, int64_t offset);
  Value* to_storage(Value* x, DType t, bool saturate = false);  // saturate: for small floats
  Value* from_storage(Value* x, DType t);
  Value* shuffle(Value* x, Value* y, llvm::ArrayRef<int> mask) {
    return b.CreateShuffleVector(x, y, mask);
  }
  // Calls `then` and `otherwise` in their own blocks and joins their values. Both may return null.
  Value* branch(Value* condition, llvm::function_ref<Value*()> then,
                llvm::function_ref<Value*()> otherwise);

 private:
  Value* round_by_magic(Value* magnitude);
  bool rounds(Value* x) const;  // by an instruction
  bool flushes(Value* x) const;
  Value* ordered(Value* x);
  Value* integer_divide(BinaryOp op, DType t, Value* x, Value* y);
  Value* float_to_int(Value* x, DType to, bool saturate);
  Value* truncate(Value* x, llvm::Type* type, bool is_signed);
  Value* nearest_int(Value* x);  // for an f32 in the range of i32
  Value* rebias(Value* shifted, int bias);
  Value* half_to_float(Value* h);
  Value* float_to_half(Value* f);
  Value* float_to_bfloat(Value* f);
  Value* small_to_float(Value* x, DType t);  // ir/dtype.h: SmallFloat
  Value* float_to_small(Value* f, DType t, bool saturate);
  Value* clamp(Value* x, bool is_signed, DType to);
  // The value of i4, i2, u4 or u2 in the low bits of an i8
  Value* wrap(Value* x, DType t);
};

bool is_all_true(const Value* v);  // constants only
bool is_all_false(const Value* v);
}  // namespace tw::codegen
