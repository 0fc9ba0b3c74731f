// Element types for storage. Their tensors are moved, cast and quantized; arithmetic is in the
// other types. Each element takes a byte, in memory and in the C ABI. Only ONNX files pack narrower
// ones (frontend/onnx/proto_read.cpp).
#pragma once
#include "ir/dtype.h"

namespace tw {
inline bool is_storage_only(DType t) { return t >= DType::f8e4m3fn; }
// Float types of one byte or less
inline bool is_small_float(DType t) { return t >= DType::f8e4m3fn && t <= DType::f4e2m1; }
int dtype_bits(DType t);      // bits of a value: 4 for i4
int64_t lowest_of(DType t);   // least value of an integer type
int64_t highest_of(DType t);  // largest value of an integer type; u64: as its bits

// The format of a float of a byte or less: sign, exponent, mantissa. f8e8m0, a power of two without
// a sign, has none.
struct SmallFloat {
  int mantissa_bits, bias;
  uint8_t largest;   // the bits of the largest finite number
  uint8_t overflow;  // the bits for larger numbers: infinity, NaN, or the largest number
  uint8_t nan;
  bool one_zero;  // the fnuz types have no -0: its bits are NaN
};
const SmallFloat& small_float(DType t);
// Both round to nearest even. With `saturate`, numbers beyond the range, infinity included, become
// the largest number. f4e2m1 always saturates, and its NaN is -0. f8e8m0 takes the exponent as it
// stands: it rounds toward zero, drops the sign, and infinity gives NaN.
float small_to_f32(DType t, uint8_t bits);
uint8_t f32_to_small(DType t, float f, bool saturate);
}  // namespace tw
