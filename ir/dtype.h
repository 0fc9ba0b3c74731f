// Element types of tensors and expressions. The enum's values index the table in dtype.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw {
enum class DType : uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  // Storage types: their tensors are moved, cast and quantized (ir/storage_types.h).
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  i2,
  u4,
  u2,
  string  // a pointer to zero-terminated UTF-8; moved, and read by runtime functions
};
inline constexpr int kArithmeticDTypeCount = 13;  // the types before the storage types
inline constexpr int kDTypeCount = 23;            // the number types, all but string

struct DTypeInfo {
  DType dtype;
  const char* name;  // "f32", "bool", … as the text forms write it
  int bytes;         // storage size; bool is a byte
  int onnx;          // TensorProto.DataType, also tw_dtype of the C ABI
};
const DTypeInfo& dtype_info(DType t);
inline const char* dtype_name(DType t) { return dtype_info(t).name; }
inline int dtype_bytes(DType t) { return dtype_info(t).bytes; }
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_onnx(int data_type);
bool is_float(DType t);
bool is_signed_int(DType t);
bool is_unsigned_int(DType t);
inline bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
inline bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

// IEEE half and bfloat16 <-> float, round to nearest even.
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f);
}  // namespace tw
