// For tests: a kernel's text run by the interpreter and compiled for several targets on the same
// random inputs.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/kernel/interpreter.h"
#include "ir/storage_types.h"
#include "tests/backends/harness.h"
#include "tests/backends/read_element.h"
#include "tests/ir/parsed.h"

namespace tw {

using Symbols = std::map<std::string, int64_t>;

inline int64_t element_count(const Buffer& buffer, const Symbols& symbols) {
  int64_t count = 1;
  for (const Expr& e : buffer.shape)
    count *= eval_int(e, [&](std::string_view name) { return symbols.at(std::string(name)); });
  return count;
}

// Floats in [-2, 2]; integers of small magnitude, not zero, so that they may divide; bool 0 and 1.
inline void fill_random(DType t, std::byte* at, std::mt19937& random) {
  float f = std::uniform_real_distribution<float>(-2, 2)(random);
  double d = double(f);
  uint16_t h = t == DType::f16 ? f32_to_f16(f) : f32_to_bf16(f);
  int64_t i = int64_t(random() % 100) + 1;
  if (is_signed_int(t) && random() % 2) i = -i;
  if (t == DType::boolean) i &= 1;
  const void* from = &i;  // little-endian: the low bytes come first
  if (t == DType::f32) from = &f;
  if (t == DType::f64) from = &d;
  if (t == DType::f16 || t == DType::bf16) from = &h;
  auto small = uint8_t(random());  // any byte whose number is below 1e6
  while (is_small_float(t) && !(std::fabs(small_to_f32(t, small)) < 1e6F))
    small = uint8_t(random());
  if (is_storage_only(t)) from = &small;
  std::memcpy(at, from, size_t(dtype_bytes(t)));
}

struct AlignedBytes {
  explicit AlignedBytes(size_t size)
      : data(static_cast<std::byte*>(std::aligned_alloc(64, (size + 127) / 64 * 64))), bytes(size) {
    std::memset(data, 0xA5, (size + 127) / 64 * 64);
  }
  AlignedBytes(AlignedBytes&& o) noexcept : data(std::exchange(o.data, nullptr)), bytes(o.bytes) {}
  ~AlignedBytes() { std::free(data); }
  bool intact() const {  // nothing was written behind the end
    for (size_t i = bytes; i < (bytes + 127) / 64 * 64; ++i)
      if (data[i] != std::byte{0xA5}) return false;
    return true;
  }
  std::byte* data;
  size_t bytes;
};

// Compares every output element; floats within tolerance * max(1, |expected|), integers and bool
// exactly.
inline void check_against_interpreter(const Kernel& kernel, const Symbols& symbols = {},
                                      double tolerance = 1e-5) {
  CAPTURE(print(kernel));
  std::mt19937 random(11);
  std::vector<KernelArgument> expected;
  std::vector<AlignedBytes> initial;
  for (const Buffer& b : kernel.buffers) {
    if (b.role == BufferRole::temp) continue;
    int64_t count = element_count(b, symbols);
    KernelArgument argument;
    argument.bytes.resize(size_t(count * dtype_bytes(b.dtype)));
    if (b.role != BufferRole::output)
      for (int64_t i = 0; i < count; ++i)
        fill_random(b.dtype, argument.bytes.data() + i * dtype_bytes(b.dtype), random);
    initial.emplace_back(argument.bytes.size());
    std::memcpy(initial.back().data, argument.bytes.data(), argument.bytes.size());
    expected.push_back(std::move(argument));
  }
  Error failed = interpret(kernel, expected, symbols);
  REQUIRE_MESSAGE(!failed, error_text(std::move(failed)));
  std::vector<int64_t> symbol_values;
  for (const std::string& s : kernel.symbols) symbol_values.push_back(symbols.at(s));
  AlignedBytes workspace(size_t(eval_int(workspace_layout(kernel).bytes, [&](std::string_view n) {
    return symbols.at(std::string(n));
  })));

  for (const Target& target : {host_target(), baseline_target(Arch::x86_64)}) {
    CAPTURE(target.cpu);
    auto compiled = LoadedKernel::compile(target, kernel);
    REQUIRE_MESSAGE(bool(compiled), error_text(compiled.takeError()));
    std::vector<void*> pointers;
    for (AlignedBytes& a : initial) pointers.push_back(a.data);
    (*compiled)(pointers, workspace.data, symbol_values.data());
    CHECK(workspace.intact());
    size_t p = 0;
    for (const Buffer& b : kernel.buffers) {
      if (b.role == BufferRole::temp) continue;
      size_t at = p++;
      CHECK(initial[at].intact());
      if (b.role != BufferRole::output) continue;
      int size = dtype_bytes(b.dtype), wrong = 0;
      for (size_t i = 0; i < expected[at].bytes.size() / size_t(size); ++i) {
        double want = read_element(b.dtype, expected[at].bytes.data() + i * size_t(size)),
               got = read_element(b.dtype, initial[at].data + i * size_t(size));
        bool same = want == got || (std::isnan(want) && std::isnan(got)) ||
                    (is_float(b.dtype) &&
                     std::fabs(want - got) <= tolerance * std::max(1.0, std::fabs(want)));
        if (!same && wrong++ < 3) {
          CAPTURE(b.name);
          CAPTURE(i);
          CHECK(got == want);
        }
      }
      CHECK(wrong == 0);
    }
  }
}

inline void check_text(const std::string& text, const Symbols& symbols = {},
                       double tolerance = 1e-5) {
  check_against_interpreter(test::sound_kernel(text), symbols, tolerance);
}

}  // namespace tw
