// Element access goes through memcpy, so bytes need no alignment.
#include "ir/graph/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

template <class T>
T get(const std::vector<std::byte>& bytes, int64_t flat) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(flat) * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void put(std::vector<std::byte>& bytes, int64_t flat, T value) {
  std::memcpy(bytes.data() + static_cast<size_t>(flat) * sizeof(T), &value, sizeof(T));
}

// The nearest integer, ties to even, clamped to T; NaN gives 0
template <class T>
T clamp_to(double value) {
  using Limits = std::numeric_limits<T>;
  double rounded = std::nearbyint(value);
  if (std::isnan(rounded)) return 0;
  if (rounded <= static_cast<double>(Limits::min())) return Limits::min();
  if (rounded >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(rounded);
}

}  // namespace

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> shape) {
  size_t bytes = static_cast<size_t>(element_count(shape)) *
                 static_cast<size_t>(dtype_bytes(dtype));
  return {dtype, std::move(shape), std::vector<std::byte>(bytes)};
}

int64_t Tensor::size() const { return element_count(shape); }

double Tensor::at(int64_t flat) const {
  switch (dtype) {
    case DType::f32: return get<float>(bytes, flat);
    case DType::f64: return get<double>(bytes, flat);
    case DType::f16: return f16_to_f32(get<uint16_t>(bytes, flat));
    case DType::bf16: return bf16_to_f32(get<uint16_t>(bytes, flat));
    case DType::u64: return static_cast<double>(get<uint64_t>(bytes, flat));
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::boolean:
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2:
    case DType::string: return static_cast<double>(int_at(flat));
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: return small_to_f32(dtype, get<uint8_t>(bytes, flat));
  }
  TW_UNREACHABLE("bad element type");
}

int64_t Tensor::int_at(int64_t flat) const {
  switch (dtype) {
    case DType::i8: return get<int8_t>(bytes, flat);
    case DType::i16: return get<int16_t>(bytes, flat);
    case DType::i32: return get<int32_t>(bytes, flat);
    case DType::i64: return get<int64_t>(bytes, flat);
    case DType::u8: return get<uint8_t>(bytes, flat);
    case DType::u16: return get<uint16_t>(bytes, flat);
    case DType::u32: return get<uint32_t>(bytes, flat);
    case DType::u64: return static_cast<int64_t>(get<uint64_t>(bytes, flat));
    case DType::boolean: return get<uint8_t>(bytes, flat) != 0;
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: break;
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return wrap_to(dtype, get<int8_t>(bytes, flat));
    case DType::string: return get<int64_t>(bytes, flat);  // the pointer
  }
  TW_UNREACHABLE("int_at of {0}", dtype_name(dtype));
}

void Tensor::set(int64_t flat, double value) {
  switch (dtype) {
    case DType::f32: return put(bytes, flat, static_cast<float>(value));
    case DType::f64: return put(bytes, flat, value);
    case DType::f16: return put(bytes, flat, f32_to_f16(static_cast<float>(value)));
    case DType::bf16: return put(bytes, flat, f32_to_bf16(static_cast<float>(value)));
    case DType::i8: return put(bytes, flat, clamp_to<int8_t>(value));
    case DType::i16: return put(bytes, flat, clamp_to<int16_t>(value));
    case DType::i32: return put(bytes, flat, clamp_to<int32_t>(value));
    case DType::i64: return put(bytes, flat, clamp_to<int64_t>(value));
    case DType::u8: return put(bytes, flat, clamp_to<uint8_t>(value));
    case DType::u16: return put(bytes, flat, clamp_to<uint16_t>(value));
    case DType::u32: return put(bytes, flat, clamp_to<uint32_t>(value));
    case DType::u64: return put(bytes, flat, clamp_to<uint64_t>(value));
    case DType::boolean: return put(bytes, flat, static_cast<uint8_t>(value != 0));
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
      return put(bytes, flat, f32_to_small(dtype, static_cast<float>(value), false));
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2:
      return put(bytes, flat,
                 static_cast<int8_t>(std::clamp<int64_t>(clamp_to<int8_t>(value), lowest_of(dtype),
                                                         highest_of(dtype))));
    case DType::string: return put(bytes, flat, static_cast<int64_t>(value));
  }
}

void Tensor::set_int(int64_t flat, int64_t value) {
  switch (dtype) {
    case DType::i8:
    case DType::u8: return put(bytes, flat, static_cast<uint8_t>(value));
    case DType::i16:
    case DType::u16: return put(bytes, flat, static_cast<uint16_t>(value));
    case DType::i32:
    case DType::u32: return put(bytes, flat, static_cast<uint32_t>(value));
    case DType::i64:
    case DType::u64: return put(bytes, flat, value);
    case DType::boolean: return put(bytes, flat, static_cast<uint8_t>(value != 0));
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: return set(flat, static_cast<double>(value));
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return put(bytes, flat, static_cast<int8_t>(wrap_to(dtype, value)));
    case DType::string: return put(bytes, flat, value);
  }
}

}  // namespace tw
