// Arithmetic on scalars and on lanes alike: an operand that is the same for all lanes stays scalar
// until it meets a vector. Types of expressions: floats of 16 bits and less are f32, bool is i1,
// integers narrower than a byte are i8; in memory f16 and bf16 are i16, bool and what is smaller
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
  // Scalar -> lanes; a vector of that many lanes is returned as it is; lanes 0: unchanged
  Value* splat(Value* v, int lanes);
  // Splats the scalar one when the other is a vector
  void unify(Value*& x, Value*& y);
  llvm::Type* with_lanes(llvm::Type* element, int lanes);

  Value* real(Value* like, double value);  // constants of the type of `like`
  Value* integer(Value* like, int64_t value);
  Value* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }

  // With fast_math: an arithmetic result that need not be right for NaN and -0
  Value* relaxed(Value* result);
  // One instruction where the cpu has it, else a product and a sum
  Value* fma(Value* x, Value* y, Value* z);
  Value* select(Value* condition, Value* x, Value* y);
  Value* logical_and(Value* x, Value* y);  // i1; either may be null: the other
  Value* logical_not(Value* x);
  Value* less(Value* x, Value* y);  // ordered float comparison
  // The larger or smaller of two floats; a NaN of either comes through
  Value* extreme(bool larger, Value* x, Value* y);
  // lt, le, eq, ne of floats, subnormal ones too
  Value* compare(BinaryOp op, Value* x, Value* y);
  Value* abs(Value* x);
  Value* copysign(Value* magnitude, Value* sign);
  Value* sqrt(Value* x);
  Value* floor(Value* x);
  Value* ceil(Value* x);
  Value* trunc(Value* x);
  Value* round_even(Value* x);
  Value* round_to_tf32(Value* x);  // of f32
  Value* widen(Value* x);          // f32 -> f64
  // f64 -> f32, kept apart from a later rounding to f16, which would need a library call
  Value* narrow(Value* x);
  // A number converted to or from an integer, kept apart from a product by a power of two where the
  // two together are wrong
  Value* unscaled(Value* x);
  Value* bits(Value* x);  // float -> the integers that store it
  Value* from_bits(Value* x);

  Value* unary(UnaryOp op, DType t, Value* x);  // also the functions of math.h
  Value* binary(BinaryOp op, DType t, Value* x, Value* y);
  // shl, shr; by the width or more they give 0 (or the sign), as a wider shift would
  Value* shift(BinaryOp op, bool is_signed, Value* x, Value* y);
  Value* combine(Combiner combiner, DType t, Value* old, Value* value);
  // By min or max of floats, where a NaN in `value` does not count
  Value* combine_numbers(Combiner combiner, Value* old, Value* value);
  // All lanes into one scalar, pairwise; `numbers`: none of them is a NaN
  Value* horizontal(Combiner combiner, DType t, Value* lanes_value, bool numbers = false);
  Value* identity(Combiner combiner, DType t);
  Value* convert(Value* x, DType from, DType to, bool saturate);
  // The saturating cast to 8 or 16 bits; of round(x) + offset, for an f32 x, where `rounded`
  Value* float_to_narrow(Value* x, DType to, bool rounded, int64_t offset);
  Value* to_storage(Value* x, DType t, bool saturate = false);  // saturate: of small floats
  Value* from_storage(Value* x, DType t);
  Value* shuffle(Value* x, Value* y, llvm::ArrayRef<int> mask) {
    return b.CreateShuffleVector(x, y, mask);
  }
  // Calls `then`/`otherwise` in their own blocks and joins their values; null values allowed when
  // both are null.
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
  Value* nearest_int(Value* x);  // of an f32 that an i32 holds
  Value* rebias(Value* shifted, int bias);
  Value* half_to_float(Value* h);
  Value* float_to_half(Value* f);
  Value* float_to_bfloat(Value* f);
  Value* small_to_float(Value* x, DType t);  // ir/dtype.h: SmallFloat
  Value* float_to_small(Value* f, DType t, bool saturate);
  Value* clamp(Value* x, bool is_signed, DType to);
  // i8 -> the value that the low bits of i4, i2, u4, u2 give
  Value* wrap(Value* x, DType t);
};

bool is_all_true(const Value* v);  // constants only
bool is_all_false(const Value* v);
}  // namespace tw::codegen
