#include "ir/kernel/in_place.h"

#include <doctest/doctest.h>

#include <cstring>

#include "ir/kernel/interpreter.h"
#include "tests/ir/parsed.h"

using namespace tw;

namespace {

// True if y may take the memory of x. The kernel must be sound in any case.
bool may(const std::string& text) {
  const Kernel kernel = test::parsed_kernel(text);
  CHECK(error_text(verify(kernel)) == "");
  return may_be_in_place(kernel, *kernel.find_buffer("y"), *kernel.find_buffer("x"));
}
bool square(const std::string& body) {
  return may("kernel @k(x: in f32[12, 12], y: out f32[12, 12]) { " + body + " }");
}

KernelArgument floats(const std::vector<float>& list) {
  KernelArgument argument;
  argument.bytes.resize(list.size() * sizeof(float));
  std::memcpy(argument.bytes.data(), list.data(), argument.bytes.size());
  return argument;
}

}  // namespace

TEST_CASE("in place: every point reads what it writes") {
  CHECK(square("for i in 12 { for j in 12 { s: y[i, j] = x[i, j] + x[i, j] * 2.0 } }"));
  CHECK(
      square("for i in 12 parallel { for j0 in 3 { for j1 in 4 vector { s: y[i, j0 * 4 + j1] = "
             "x[i, j0 * 4 + j1] } } }"));
  CHECK(square("for f in 144 parallel { s: y[f // 12, f % 12] = x[f // 12, f % 12] }"));
  CHECK(
      square("for f in 36 { for l in 4 vector { s: y[f // 3, f % 3 * 4 + l] = x[f // 3, f % 3 * 4 "
             "+ l] } }"));
  CHECK(
      square("for f in 72 { s: y[f // 12 * 2, f // 4 % 3 * 4 + f % 4] = x[f // 12 * 2, f // 4 % 3 "
             "* 4 + f % 4] }"));
  CHECK(
      square("for i0 in 3 { for i1 in 5 unroll { if i0 * 5 + i1 < 12 { for j in 12 { s: y[11 - i0 "
             "* 5 - i1, j] = x[11 - i0 * 5 - i1, j] } } } }"));
  CHECK(square("for i in 12 { for j in 12 { s: y[i, j] = x[i, j] where i < j } }"));
  CHECK(
      square("for i in 6 { for j in 12 { a: y[i, j] = x[i, j] } } for i2 in 6 { for j2 in 12 { b: "
             "y[i2 + 6, j2] = x[i2 + 6, j2] } }"));
  CHECK(square("for i in 12 { for j in 12 { prefetch x[i + 1, j] s: y[i, j] = x[i, j] } }"));
  CHECK(
      may("kernel @k[n](x: in f32[n, 4], y: out f32[n, 4]) { for i in n { for j in 4 { s: y[i, j] "
          "= x[i, j] } } }"));
  CHECK(
      may("kernel @k[n](x: in f32[n], y: out f32[n]) { for i in (n + 7) // 8 { for j in 8 vector { "
          "if i * 8 + j < n { s: y[i * 8 + j] = x[i * 8 + j] } } } }"));
}

TEST_CASE("in place: what is read before, in the same iterations of the loops around both") {
  CHECK(may(R"(kernel @rows(x: in f32[6, 8], y: out f32[6, 8]) {
    temp sum: f32[6]
    for i in 6 parallel {
      for k in 8 reduce { sum: sum[i] += x[i, k] init 0.0 }
      for j in 8 { y: y[i, j] = x[i, j] - sum[i] }
    } })"));
  CHECK(may(R"(kernel @tile(x: in f32[8, 12], y: out f32[8, 12]) {
    temp acc: f32[2, 3] register
    for i in 4 { for j in 4 {
      for a in 2 unroll { for b in 3 unroll { acc: acc[a, b] = x[i * 2 + a, j * 3 + b] } }
      for c in 2 unroll { for d in 3 unroll { y: y[i * 2 + c, j * 3 + d] = acc[c, d] + x[i * 2 + c, j * 3 + d] } }
    } } })"));
  CHECK(may(R"(kernel @transposed(x: in f32[5, 5], y: out f32[5, 5]) {
    temp t: f32[5, 5]
    for i in 5 { for j in 5 { t: t[i, j] = x[j, i] } }
    for a in 5 { for b in 5 { y: y[a, b] = t[a, b] } } })"));
}

TEST_CASE("in place: not where an element may be read after it is stored") {
  CHECK_FALSE(square("for i in 12 { for j in 12 { s: y[i, j] = x[j, i] } }"));
  // These are right only if iterations run in a certain order.
  CHECK_FALSE(square("for i in 11 { for j in 12 { s: y[i, j] = x[i + 1, j] } }"));
  CHECK_FALSE(square("for i in 11 { for j in 12 { s: y[i + 1, j] = x[i, j] } }"));
  CHECK_FALSE(square("for i in 12 { for j in 12 { s: y[i, j] = x[i, j] + x[i, 0] } }"));
  // Tiles overlap, so some elements are stored twice.
  CHECK_FALSE(
      square("for i0 in 3 { for i1 in 5 { for j in 12 { s: y[min(i0 * 5, 7) + i1, j] = x[min(i0 * "
             "5, 7) + i1, j] } } }"));
  CHECK_FALSE(
      square("for i in 3 { for a in 5 { for j in 12 { s: y[i * 3 + a, j] = x[i * 3 + a, j] } } }"));
  CHECK_FALSE(square("for f in 144 { s: y[f // 12, f % 8] = x[f // 12, f % 8] }"));
  CHECK_FALSE(square("for f in 144 { s: y[f // 12, f // 8 % 12] = x[f // 12, f // 8 % 12] }"));
  // Elements are stored twice, or read after a store.
  CHECK_FALSE(square("for r in 2 { for i in 12 { for j in 12 { s: y[i, j] = x[i, j] } } }"));
  CHECK_FALSE(square("for i in 12 { for j in 12 { a: y[i, j] = 0.0 b: y[i, j] += x[i, j] } }"));
  CHECK_FALSE(square("for i in 12 { for j in 12 { s: y[i, j] += x[i, j] init 0.0 } }"));
  CHECK_FALSE(square(
      "for i in 12 { for j in 12 { for k in 12 reduce { s: y[i, j] += x[i, k] init 0.0 } } }"));
  CHECK_FALSE(square("for i in 12 { for j in 12 { if x[0, j] < 1.0 { s: y[i, j] = x[i, j] } } }"));
  CHECK_FALSE(square("for i in 12 { for j in 12 { s: y[i, i64(x[i, j])] = x[i, j] } }"));
  // Rows 6 and 7 are stored twice.
  CHECK_FALSE(
      square("for i in 8 { for j in 12 { a: y[i, j] = x[i, j] } } for i2 in 6 { for j2 in 12 { b: "
             "y[i2 + 6, j2] = x[i2 + 6, j2] } }"));
  CHECK_FALSE(square("for i in 4 vthread { for j in 12 { s: y[i, j] = x[i, j] } }"));
  CHECK_FALSE(
      square("for i in 12 { block b by some_instruction { for j in 12 vector { s: y[i, j] = x[i, "
             "j] } } }"));
  CHECK_FALSE(may(R"(kernel @rows(x: in f32[6, 8], y: out f32[6, 8]) {
    temp sum: f32[6]
    for i in 6 parallel { for h in 2 {
      for k in 8 reduce { sum: sum[i] += x[i, k] init 0.0 }
      for j in 4 { y: y[i, h * 4 + j] = x[i, h * 4 + j] - sum[i] }
    } } })"));
}

TEST_CASE("in place: only an input of the same storage") {
  CHECK_FALSE(may("kernel @k(x: in f32[4], y: out i32[4]) { for i in 4 { s: y[i] = i32(x[i]) } }"));
  CHECK_FALSE(may("kernel @k(x: in f32[5], y: out f32[4]) { for i in 4 { s: y[i] = x[i] } }"));
  CHECK_FALSE(
      may("kernel @k[n](x: in f32[n], y: out f32[n + 1]) { for i in n { s: y[i] = x[i] } }"));
  CHECK_FALSE(may("kernel @k(x: const f32[4], y: out f32[4]) { for i in 4 { s: y[i] = x[i] } }"));
  const Kernel sum = test::parsed_kernel(
      "kernel @k(a: in f32[4], b: in f32[4], c: in f32[1], y: out f32[4]) { for i in 4 { s: y[i] = "
      "a[i] + b[i] * c[0] } }");
  CHECK(in_place_inputs(sum, BufferId{3}) == std::vector<BufferId>{BufferId{0}, BufferId{1}});
}

TEST_CASE("in place: the declaration is text, is checked, and means something") {
  const std::string text =
      "kernel @k(a: in f32[3], b: in f32[3], y: out f32[3] inplace b inplace a) {\n  for i in 3 "
      "{\n    s: y[i] = a[i] + b[i]\n  }\n}\n";
  Kernel kernel = test::parsed_kernel(text);
  CHECK(print(kernel) == text);
  CHECK(error_text(verify(kernel)) == "");
  Kernel plain = kernel;
  plain.buffers[2].in_place.clear();
  CHECK(kernel_hash(kernel) != kernel_hash(plain));

  std::vector<KernelArgument> arguments = {floats({1, 2, 3}), floats({10, 20, 30}), {{}, 1}};
  CHECK(error_text(interpret(kernel, arguments)) == "");
  CHECK(arguments[1].bytes == floats({11, 22, 33}).bytes);
  arguments = {floats({1, 2, 3}), floats({10, 20, 30}), floats({0, 0, 0})};
  CHECK(error_text(interpret(kernel, arguments)) == "");
  CHECK(arguments[2].bytes == floats({11, 22, 33}).bytes);
  arguments[2] = {{}, 1};
  CHECK(error_text(interpret(plain, arguments)) ==
        "kernel @k: 'y' may not be made in place of argument 1");

  auto problem = [](const std::string& kernel_text) {
    return error_text(verify(test::parsed_kernel(kernel_text)));
  };
  CHECK(problem("kernel @k(a: in f32[3], y: out f32[3] inplace a inplace a) { for i in 3 { s: y[i] "
                "= a[i] } }") == "kernel @k: 'y' is in place of 'a' twice");
  CHECK(problem(
            "kernel @k(a: in f32[3], y: out f32[3] inplace z) { for i in 3 { s: y[i] = a[i] } }") ==
        "kernel @k: 'y' may not be made in place of 'z'");
  CHECK(problem("kernel @k(a: in f32[3], y: out f32[3] inplace a) { for i in 3 { s: y[i] = a[2 - "
                "i] } }") == "kernel @k: 'y' may not be made in place of 'a'");
}
