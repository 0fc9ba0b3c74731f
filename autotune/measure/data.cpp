#include "autotune/measure/data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "support/diag.h"

namespace tw {
namespace {

// Sixty-four well-mixed bits from a counter (the finalizer of splitmix64).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <class T, class Make>
void fill_with(std::span<std::byte> bytes, uint64_t start, const Make& make) {
  const size_t count = bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    const T value = make(mixed(start + i));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
  }
}

float unit(uint64_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 40) - (1 << 23)) / (1 << 23);
}
template <class T>
T small_int(uint64_t bits) {
  return static_cast<T>(static_cast<int64_t>(bits % 2001) - 1000);
}
template <class T>
T small_unsigned(uint64_t bits) {
  return static_cast<T>(bits % 1001);
}

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
double value_of(Half x) { return f16_to_f32(x.bits); }
double value_of(Brain x) { return bf16_to_f32(x.bits); }
template <class T>
double value_of(T x) {
  return static_cast<double>(x);
}

template <class T>
T element(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
  return value;
}

struct Worst {
  double off = 0, got = 0, want = 0;
  size_t at = 0;
};

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string report(const Worst& worst) {
  return "element " + std::to_string(worst.at) + " is " + number(worst.got) + ", expected " +
         number(worst.want);
}

template <class T>
std::string float_difference(std::span<const std::byte> got, std::span<const std::byte> want,
                             double tolerance) {
  const size_t count = want.size() / sizeof(T);
  Worst worst;
  double low = 0, high = 0;
  for (size_t i = 0; i < count; ++i) {
    const double a = value_of(element<T>(got, i)), b = value_of(element<T>(want, i));
    if (std::isfinite(b)) {
      low = std::min(low, b);
      high = std::max(high, b);
    }
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double off = std::isfinite(a - b) ? std::abs(a - b)
                                            : std::numeric_limits<double>::infinity();
    if (off > worst.off) worst = {off, a, b, i};
  }
  const double range = high - low;
  if (worst.off <= tolerance * range) return "";
  return report(worst) + ", off by " + number(range > 0 ? worst.off / range : worst.off) +
         " of the output's range";
}

template <class T>
std::string int_difference(std::span<const std::byte> got, std::span<const std::byte> want) {
  if (std::memcmp(got.data(), want.data(), want.size()) == 0) return "";
  Worst worst;
  for (size_t i = 0; i < want.size() / sizeof(T); ++i) {
    const T a = element<T>(got, i), b = element<T>(want, i);
    if (a == b) continue;
    // At least 0.5, as a double cannot hold every i64.
    const double off = std::max(std::abs(value_of(a) - value_of(b)), 0.5);
    if (off > worst.off) worst = {off, value_of(a), value_of(b), i};
  }
  return report(worst);
}

}  // namespace

void fill_parameter(std::span<std::byte> bytes, DType dtype, uint64_t seed, size_t index) {
  const uint64_t start = mixed(seed * 1000003 + index);
  switch (dtype) {
    case DType::f32: return fill_with<float>(bytes, start, unit);
    case DType::f64:
      return fill_with<double>(bytes, start,
                               [](uint64_t b) { return static_cast<double>(unit(b)); });
    case DType::f16:
      return fill_with<uint16_t>(bytes, start, [](uint64_t b) { return f32_to_f16(unit(b)); });
    case DType::bf16:
      return fill_with<uint16_t>(bytes, start, [](uint64_t b) { return f32_to_bf16(unit(b)); });
    case DType::i8:
    case DType::u8:
      return fill_with<uint8_t>(bytes, start,
                                [](uint64_t b) { return static_cast<uint8_t>(b >> 56); });
    case DType::i16: return fill_with<int16_t>(bytes, start, small_int<int16_t>);
    case DType::i32: return fill_with<int32_t>(bytes, start, small_int<int32_t>);
    case DType::string:
    case DType::i64: return fill_with<int64_t>(bytes, start, small_int<int64_t>);
    case DType::u16: return fill_with<uint16_t>(bytes, start, small_unsigned<uint16_t>);
    case DType::u32: return fill_with<uint32_t>(bytes, start, small_unsigned<uint32_t>);
    case DType::u64: return fill_with<uint64_t>(bytes, start, small_unsigned<uint64_t>);
    case DType::boolean:
      return fill_with<uint8_t>(bytes, start,
                                [](uint64_t b) { return static_cast<uint8_t>(b >> 63); });
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
      return fill_with<uint8_t>(bytes, start,
                                [&](uint64_t b) { return f32_to_small(dtype, unit(b), true); });
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2:
      return fill_with<int8_t>(bytes, start, [&, unused = 64 - dtype_bits(dtype)](uint64_t b) {
        return static_cast<int8_t>(wrap_to(dtype, static_cast<int64_t>(b >> unused)));
      });
  }
}

uint64_t output_bytes(std::span<const BufferSpec> buffers) {
  uint64_t bytes = 0;
  for (const BufferSpec& buffer : buffers)
    if (!buffer.input && !buffer.constant) bytes += buffer.bytes;
  return bytes;
}

std::string output_difference(std::span<const std::byte> got, std::span<const std::byte> want,
                              DType dtype, double tolerance) {
  if (got.size() != want.size())
    return std::to_string(got.size()) + " bytes, expected " + std::to_string(want.size());
  switch (dtype) {
    case DType::f32: return float_difference<float>(got, want, tolerance);
    case DType::f64: return float_difference<double>(got, want, tolerance);
    case DType::f16: return float_difference<Half>(got, want, tolerance);
    case DType::bf16: return float_difference<Brain>(got, want, tolerance);
    case DType::i8: return int_difference<int8_t>(got, want);
    case DType::i16: return int_difference<int16_t>(got, want);
    case DType::i32: return int_difference<int32_t>(got, want);
    case DType::string:
    case DType::i64: return int_difference<int64_t>(got, want);
    case DType::u8:
    case DType::boolean: return int_difference<uint8_t>(got, want);
    case DType::u16: return int_difference<uint16_t>(got, want);
    case DType::u32: return int_difference<uint32_t>(got, want);
    case DType::u64: return int_difference<uint64_t>(got, want);
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return int_difference<int8_t>(got, want);
  }
  TW_UNREACHABLE("bad element type");
}

}  // namespace tw
