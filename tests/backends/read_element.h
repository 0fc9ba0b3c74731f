// For tests: an element of any type as a double.
#pragma once
#include <cstddef>
#include <cstring>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "support/diag.h"

namespace tw {

inline double read_element(DType t, const std::byte* at) {
  auto as = [&]<class T>(T v) {
    std::memcpy(&v, at, sizeof v);
    return v;
  };
  switch (t) {
    case DType::f32: return double(as(float{}));
    case DType::f64: return as(double{});
    case DType::f16: return double(f16_to_f32(as(uint16_t{})));
    case DType::bf16: return double(bf16_to_f32(as(uint16_t{})));
    case DType::i8: return as(int8_t{});
    case DType::i16: return as(int16_t{});
    case DType::i32: return as(int32_t{});
    case DType::string:
    case DType::i64: return double(as(int64_t{}));
    case DType::u8:
    case DType::boolean: return as(uint8_t{});
    case DType::u16: return as(uint16_t{});
    case DType::u32: return as(uint32_t{});
    case DType::u64: return double(as(uint64_t{}));
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: return double(small_to_f32(t, as(uint8_t{})));
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return double(wrap_to(t, as(int8_t{})));
  }
  TW_UNREACHABLE("bad element type");
}

}  // namespace tw
