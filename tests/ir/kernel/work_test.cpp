#include "ir/kernel/work.h"

#include <doctest/doctest.h>

#include "tests/ir/parsed.h"

using namespace tw;

namespace {
std::string work_of(const std::string& text) {
  auto kernel = parse_kernel(text);
  if (!kernel) return error_text(kernel.takeError());
  const Work work = count_work(*kernel);
  return to_string(work.flops) + " flops, " + to_string(work.weight_bytes) + " + " +
         to_string(work.tensor_bytes) + " bytes";
}
}  // namespace

TEST_CASE("a multiply-add counts two, an epilogue each operator; temps are not traffic") {
  CHECK(
      work_of(
          R"(kernel @dense(x: in f32[4, 3], w: const f32[3, 2], b: const f32[2], y: out f32[4, 2]) {
    temp c: f32[4, 2]
    for i in 4 { for j in 2 { for k in 3 reduce { c: c[i, j] += x[i, k] * w[k, j] init 0 } } }
    for i1 in 4 { for j1 in 2 { y: y[i1, j1] = max(0.0, c[i1, j1] + b[j1]) } }
  })") == "64 flops, 32 + 80 bytes");
}

TEST_CASE("what is computed of constants alone is free") {
  CHECK(work_of("kernel @k(x: in f32[4, 3], w: const f32[3], y: out f32[4]) { for i in 4 { for k "
                "in 3 reduce { y: y[i] += x[i, k] * exp(w[k] * 2.0 + w[0]) init 0 } } }") ==
        "24 flops, 12 + 64 bytes");
}

TEST_CASE("symbols stay in the counts") {
  CHECK(work_of("kernel @k[n](x: in f32[n, 8], y: out f32[n]) { for i in n { for k in 8 reduce { "
                "y: y[i] += x[i, k] init 0 } } }") == "n * 8 flops, 0 + n * 36 bytes");
}

TEST_CASE("a gather touches what it reads, not the table") {
  CHECK(work_of("kernel @g(w: const f32[1000, 4], i: in i64[2], y: out f32[2, 4]) { for a in 2 { "
                "for b in 4 { y: y[a, b] = w[i[a], b] } } }") == "0 flops, 32 + 48 bytes");
}

TEST_CASE(
    "the dearer side of a select; functions cost their polynomials; index arithmetic is free") {
  CHECK(work_of("kernel @s(x: in f32[9], y: out f32[4]) { for i in 4 { y: y[i] = select(i < 2, "
                "exp(x[i * 2 + 1]), x[i] + 1.0) } }") ==
        std::to_string(4 * flops_of(UnaryOp::exp)) + " flops, 0 + 48 bytes");
}

TEST_CASE("integer tensors count as well") {
  CHECK(
      work_of(
          "kernel @q(x: in i8[4], y: out i32[4]) { for i in 4 { y: y[i] = i32(x[i]) * 2:i32 } }") ==
      "4 flops, 0 + 20 bytes");
}

TEST_CASE("a kernel multiplies what its instructions do, else floats") {
  const auto type = [](const std::string& operand, const std::string& inner) {
    const std::string text = "kernel @k(a: in " + operand + "[8], b: const " + operand +
                             "[8], y: out f32[1]) { for i in 4 reduce { " + inner + " } }";
    return multiplied_type(test::parsed_kernel(text));
  };
  const std::string products =
      "for k in 2 reduce { t: y[0] += f32(a[i * 2 + k]) * f32(b[i * 2 + k]) }";
  CHECK(type("bf16", "block dot by pairs { " + products + " }") == DType::bf16);
  CHECK(type("bf16", "block dot { " + products + " }") == DType::f32);
  CHECK(type("bf16", products) == DType::f32);
  CHECK(type("f64", products) == DType::f64);
}
