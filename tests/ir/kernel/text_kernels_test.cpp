// Each tests/golden/kernels/*.tilewright has a kernel for a device or in a streaming form, then
//   // --- plain
// and a plain kernel of the same values. The first kernel must print as it stands
// (TW_UPDATE_GOLDEN=1 rewrites it), verify, and give the plain one's values. Spoilt versions of it
// must not.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ir/kernel/interpreter.h"
#include "tests/ir/parsed.h"

namespace {

namespace fs = std::filesystem;
using tw::Kernel;
using Values = std::vector<tw::KernelArgument>;

fs::path path_of(const std::string& name) {
  return fs::path(TW_TEST_DIR) / "golden" / "kernels" / (name + ".tilewright");
}

struct Pair {
  std::string kernel, plain;
};
Pair read_pair(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(path_of(name)).rdbuf();
  const std::string all = text.str(), mark = "// --- plain\n";
  const size_t at = all.find(mark);
  REQUIRE(at != std::string::npos);
  return {all.substr(0, at), all.substr(at + mark.size())};
}

Values arguments_of(const Kernel& kernel, uint32_t seed) {
  std::mt19937 random(seed);
  Values values;
  for (const tw::Buffer& buffer : kernel.buffers) {
    if (buffer.role == tw::BufferRole::temp) continue;
    int64_t count = 1;
    for (const tw::Expr& dim : buffer.shape) count *= *tw::as_const(dim);
    std::vector<std::byte>& bytes = values.emplace_back().bytes;
    bytes.resize(static_cast<size_t>(count * tw::dtype_bytes(buffer.dtype)));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const int value = static_cast<int>(random() % 9) - 4;
      const float real = static_cast<float>(value) / 2;
      if (buffer.dtype == tw::DType::f32) std::memcpy(bytes.data() + i * 4, &real, 4);
      else bytes[i] = static_cast<std::byte>(value);
    }
  }
  return values;
}

bool close(const Kernel& kernel, const Values& a, const Values& b) {
  size_t next = 0;
  for (const tw::Buffer& buffer : kernel.buffers) {
    if (buffer.role == tw::BufferRole::temp) continue;
    const auto& x = a[next].bytes;
    const auto& y = b[next++].bytes;
    if (buffer.dtype != tw::DType::f32) {
      if (x != y) return false;
      continue;
    }
    for (size_t i = 0; i < x.size(); i += 4) {
      float p = 0, q = 0;
      std::memcpy(&p, x.data() + i, 4);
      std::memcpy(&q, y.data() + i, 4);
      if (!(std::abs(p - q) <= 1e-5f)) return false;
    }
  }
  return true;
}

// Returns the problem of the kernel; "" if it gives the plain one's values.
std::string outcome(const std::string& text, const std::string& plain) {
  const Kernel kernel = tw::test::parsed_kernel(text), reference = tw::test::parsed_kernel(plain);
  if (std::string problem = tw::error_text(tw::verify(kernel)); !problem.empty()) return problem;
  Values expected = arguments_of(reference, 7), actual = expected;
  REQUIRE(tw::error_text(tw::interpret(reference, expected)) == "");
  if (std::string problem = tw::error_text(tw::interpret(kernel, actual)); !problem.empty())
    return problem;
  return close(kernel, actual, expected) ? "" : "other values";
}

// Spoils the kernel of `file`: replaces the first `from` after `behind` by `to`. The result must be
// refused with an error that contains `error`.
void spoilt(const std::string& file, const std::string& behind, const std::string& from,
            const std::string& to, const std::string& error) {
  CAPTURE(from);
  CAPTURE(to);
  Pair pair = read_pair(file);
  const size_t start = pair.kernel.find(behind);
  REQUIRE(start != std::string::npos);
  const size_t at = pair.kernel.find(from, start);
  REQUIRE(at != std::string::npos);
  pair.kernel.replace(at, from.size(), to);
  const std::string found = outcome(pair.kernel, pair.plain);
  CHECK_MESSAGE((!found.empty() && found.find(error) != std::string::npos), "'" << found << "'");
}

}  // namespace

TEST_CASE("text kernels: print as they stand, verify, and equal the plain ones") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(path_of("").parent_path())) {
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    const Pair pair = read_pair(name);
    const std::string printed = tw::print(tw::test::parsed_kernel(pair.kernel));
    if (std::getenv("TW_UPDATE_GOLDEN"))
      std::ofstream(entry.path()) << printed << "// --- plain\n"
                                  << tw::print(tw::test::parsed_kernel(pair.plain));
    else CHECK(printed == pair.kernel);
    CHECK(outcome(printed, pair.plain) == "");
    ++count;
  }
  CHECK(count >= 3);
}

TEST_CASE("text kernels: a ring of asynchronous copies with something wrong") {
  const char* ring = "ring_gemm";
  spoilt(ring, "consumer", "wait full[g * 3 + kc % 3]\n", "", "token queue 'full[0]' is given");
  spoilt(ring, "producer", "wait free[kp % 3] 2\n", "", "token queue 'free[0]' is given");
  spoilt(ring, "consumer", "signal free[kc % 3]\n", "", "token queue 'free[0]' is given");
  spoilt(ring, "producer", "signal full[kp % 3] async", "signal full[kp % 3]",
         "is read before it is written");
  spoilt(ring, "producer", "signal full[kp % 3 + 3] async", "signal full[kp % 3] async",
         "token queue 'full[0]' is given");
  spoilt(ring, "tokens full", "= 2 per bx", "= 1 per bx", "nothing can go on");
  spoilt(ring, "tokens full", "= 2 per bx", "= 4 per bx", "with nothing to order them");
  spoilt(ring, "temp xs", "shared per bx", "shared", "with nothing to order them");
  spoilt(ring, "producer", "xs[kp % 3, xi, xk]", "xs[(kp + 1) % 3, xi, xk]",
         "is read before it is written");
  // Both consumers wait on one queue, so one may run ahead and take the other's token.
  spoilt(ring, "consumer", "wait full[g * 3 + kc % 3]", "wait full[kc % 3]",
         "token queue 'full[0]' is given");
}

TEST_CASE("text kernels: token counts right, order wrong") {
  // The order is wrong in three ways: the consumer releases the slot before it has read it, or
  // waits after it has read; or the copies come after their token.
  const Pair pair = read_pair("ring_gemm");
  const auto moved = [&](const std::string& line, const std::string& behind) {
    std::string text = pair.kernel;
    const size_t from = text.find(line);
    REQUIRE(from != std::string::npos);
    text.erase(from, line.size());
    const size_t to = text.find(behind);
    REQUIRE(to != std::string::npos);
    text.insert(to + behind.size(), line);
    return outcome(text, pair.plain);
  };
  CHECK(moved("signal free[kc % 3]\n", "wait full[g * 3 + kc % 3]\n")
            .find("with nothing to order them") != std::string::npos);
  CHECK(moved("signal full[kp % 3] async\n", "wait free[kp % 3] 2\n")
            .find("is read before it is written") != std::string::npos);
  CHECK(moved("wait full[g * 3 + kc % 3]\n", "signal free[kc % 3]\n") != "");
}

TEST_CASE("text kernels: every token of two virtual threads is needed") {
  const char* vdla = "vdla_gemm";
  for (const char* line :
       {"wait free\n", "signal full\n", "wait acc.free\n", "wait full\n", "signal free\n",
        "signal acc.full\n", "wait acc.full\n", "signal acc.free\n"})
    spoilt(vdla, "load {", line, "", "than are taken");
  spoilt(vdla, "tokens full", "= 1 per v", "= 2 per v", "with nothing to order them");
  spoilt(vdla, "temp inp", "sram.inp per v", "sram.inp", "with nothing to order them");
  spoilt(vdla, "tokens acc.free", "= 1 per v", "= 2 per v", "with nothing to order them");
}

TEST_CASE("text kernels: attention needs its carried maximum and sum") {
  const char* attention = "streaming_attention";
  spoilt(attention, "scan", "sum.scale: sum[0] *= old[0]\n", "", "other values");
  spoilt(attention, "scan", "o.scale: o[e1] *= old[0]", "o.scale: o[e1] *= 1", "other values");
  spoilt(attention, "top.init", "top.init: top[0] = -inf\n", "", "read before it is written");
}
