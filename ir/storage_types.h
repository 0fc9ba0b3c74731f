// Element types for storage: tensors of them are moved, cast and quantized, arithmetic is in the
// other types. Each of their elements is a byte, in memory and in the C ABI; what is narrower is
// packed only in ONNX files (frontend/onnx/proto_read.cpp).
#pragma once
#include "ir/dtype.h"

namespace tw {
inline bool is_storage_only(DType t) { return t >= DType::f8e4m3fn; }
// Of a byte or less
inline bool is_small_float(DType t) { return t >= DType::f8e4m3fn && t <= DType::f4e2m1; }
int dtype_bits(DType t);      // of the values: 4 for i4
int64_t lowest_of(DType t);   // of an integer type
int64_t highest_of(DType t);  // of u64: its bits

// Floats of a byte or less: sign, exponent, mantissa. f8e8m0, a power of two without sign, stands
// apart.
struct SmallFloat {
  int mantissa_bits, bias;
  uint8_t largest;   // the bits of the largest finite number
  uint8_t overflow;  // of what is larger: infinity or NaN (or the largest number)
  uint8_t nan;
  bool one_zero;  // the fnuz types have no -0: its bits are NaN
};
const SmallFloat& small_float(DType t);
// Round to nearest even. saturate: what is too large, infinity included, becomes the largest
// number. f4e2m1 always saturates, and its NaN is -0. f8e8m0 takes the exponent as it stands:
// toward zero, without sign, NaN of infinity.
float small_to_f32(DType t, uint8_t bits);
uint8_t f32_to_small(DType t, float f, bool saturate);
}  // namespace tw
