// A dense row-major tensor in memory, for reference evaluation, constants and files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/blob.h"
#include "ir/dtype.h"
#include "support/diag.h"

namespace tw {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  static Tensor zeros(DType dtype, std::vector<int64_t> shape);
  int64_t size() const;  // number of elements
  // Converts any dtype to double. i64 above 2^53 rounds; int_at is exact.
  double at(int64_t flat) const;
  int64_t int_at(int64_t flat) const;
  void set(int64_t flat, double value);       // rounds to the dtype; integers saturate
  void set_int(int64_t flat, int64_t value);  // integers wrap
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};
int64_t element_count(std::span<const int64_t> shape);  // 1 for rank 0

// .npy version 1/2 files; little endian, C order. Errors name the file.
Expected<Tensor> read_npy(const std::string& path);
Expected<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& name);
Error write_npy(const std::string& path, const Tensor& tensor);
}  // namespace tw
