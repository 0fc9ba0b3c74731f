#include "ir/kernel/interpreter.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

using namespace tw;

namespace {

template <class T>
KernelArgument values(const std::vector<T>& list) {
  KernelArgument argument;
  argument.bytes.resize(list.size() * sizeof(T));
  if (!list.empty()) std::memcpy(argument.bytes.data(), list.data(), argument.bytes.size());
  return argument;
}
template <class T>
std::vector<T> read(const KernelArgument& argument) {
  std::vector<T> list(argument.bytes.size() / sizeof(T));
  if (!list.empty()) std::memcpy(list.data(), argument.bytes.data(), argument.bytes.size());
  return list;
}

std::string run(const std::string& text, std::vector<KernelArgument>& arguments,
                const std::map<std::string, int64_t>& symbols = {}) {
  auto kernel = parse_kernel(text);
  if (!kernel) return error_text(kernel.takeError());
  return error_text(interpret(*kernel, arguments, symbols));
}
// Runs statements over y: out T[size] and returns y.
template <class T>
std::vector<T> compute(const char* type, size_t size, const std::string& body) {
  std::vector<KernelArgument> arguments = {values(std::vector<T>(size))};
  std::string error = run(
      "kernel @k(y: out " + std::string(type) + "[" + std::to_string(size) + "]) { " + body + " }",
      arguments);
  CHECK(error == "");
  return read<T>(arguments[0]);
}

}  // namespace

TEST_CASE("a dense layer with a symbol, a temp and a combiner") {
  std::vector<KernelArgument> arguments = {
      values<float>({1, 2, 3, 4, 5, 6}), values<float>({1, 0, -1, 2, 1, -3}),
      values<float>({0.5f, 1}), values<float>(std::vector<float>(4))};
  CHECK(
      run(R"(kernel @dense[n](x: in f32[n, 3], w: const f32[3, 2], b: const f32[2], y: out f32[n, 2]) {
    temp c: f32[n, 2]
    for i in n parallel { for j in 2 vector { for k in 3 reduce { c: c[i, j] += x[i, k] * w[k, j] init 0 } } }
    for i1 in n { for j1 in 2 { y: y[i1, j1] = max(0.0, c[i1, j1] + b[j1]) } }
  })",
          arguments, {{"n", 2}}) == "");
  CHECK(read<float>(arguments[3]) == std::vector<float>{2.5f, 0, 5.5f, 0});
}

TEST_CASE("init runs at the first point of the reduction, where guards only the update") {
  CHECK(compute<float>("f32", 2,
                       "for i in 2 { for a in 2 reduce { for b in 3 reduce { s: y[i] += 1 where a "
                       "+ b > 0 init 10 } } }") == std::vector<float>{15, 15});
  CHECK(compute<int32_t>("i32", 3, "for i in 3 { s: y[i] max= i32(i) where i != 1 init 1 }") ==
        std::vector<int32_t>{1, 1, 2});
  CHECK(compute<int32_t>("i32", 3, "for i in 3 { if i == 1 { s: y[i] = 7 } }") ==
        std::vector<int32_t>{0, 7, 0});
}

TEST_CASE("integers wrap and casts follow their rules") {
  CHECK(compute<int8_t>(
            "i8", 3, "a: y[0] = 127:i8 + i8(i32(1)) b: y[1] = sat.i8(300.7) c: y[2] = i8(-3.9)") ==
        std::vector<int8_t>{-128, 127, -3});
  CHECK(compute<uint8_t>("u8", 3,
                         "a: y[0] = sat.u8(-5.0) b: y[1] = sat.u8(nan) c: y[2] = u8(300:i32)") ==
        std::vector<uint8_t>{0, 0, 44});
  CHECK(compute<int64_t>(
            "i64", 4,
            "for i in 4 { s: y[i] = (i - 2) // 2 * 100 + (i - 2) % 3 * 10 + (i - 2) / 2 }") ==
        std::vector<int64_t>{-100 + 10 - 1, -100 + 20, 0, 10});
  CHECK(compute<int32_t>("i32", 2, "a: y[0] = sat.i32(1e20) b: y[1] = sat.i32(-inf)") ==
        std::vector<int32_t>{INT32_MAX, INT32_MIN});
  CHECK(compute<float>("f32", 2,
                       "a: y[0] = f32(18446744073709551615:u64) b: y[1] = f32(i8(200:u8))") ==
        std::vector<float>{18446744073709551616.0f, -56});
}

TEST_CASE("stores round to the buffer's type") {
  CHECK(compute<float>("f32", 1, "a: y[0] = 16777216.0 + 1.0") == std::vector<float>{16777216.0f});
  CHECK(compute<uint16_t>("f16", 2, "a: y[0] = f16(1.0) + f16(0.0004) b: y[1] = f16(70000.0)") ==
        std::vector<uint16_t>{0x3c00, 0x7c00});
  CHECK(compute<uint16_t>("bf16", 1, "a: y[0] = bf16(1.01)") ==
        std::vector<uint16_t>{f32_to_bf16(1.01f)});
  CHECK(compute<uint8_t>("bool", 2, "a: y[0] = 0.5 < 1.0 b: y[1] = nan == nan") ==
        std::vector<uint8_t>{1, 0});
}

TEST_CASE("float functions and NaN") {
  auto y = compute<float>("f32", 6,
                          "a: y[0] = max(0.0, nan) b: y[1] = max(nan, 0.0) c: y[2] = round(2.5) d: "
                          "y[3] = sigmoid(0.0) e: y[4] = sign(-2.0) f: y[5] = rsqrt(4.0)");
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK(y[2] == 2);
  CHECK(y[3] == 0.5);
  CHECK(y[4] == -1);
  CHECK(y[5] == 0.5);
}

TEST_CASE("selects and short circuits guard their loads") {
  std::vector<KernelArgument> arguments = {values<float>({1, 2}),
                                           values<float>(std::vector<float>(4))};
  CHECK(run("kernel @k(x: in f32[2], y: out f32[4]) { for i in 4 { s: y[i] = select(i < 2 && x[i] "
            "> 1.0, x[i], 9.0) } }",
            arguments) == "");
  CHECK(read<float>(arguments[1]) == std::vector<float>{9, 2, 9, 9});
}

TEST_CASE("run-time errors name stage, access and indices") {
  auto error = [](const std::string& body) {
    std::vector<KernelArgument> arguments = {values<float>({1, 2}),
                                             values<float>(std::vector<float>(4))};
    return run("kernel @k(x: in f32[2], y: out f32[2, 2]) {\n temp t: f32[3]\n" + body + "}",
               arguments);
  };
  CHECK(error("for i in 3 { s: y[0, 0] = x[i] }") ==
        "kernel @k: stage 's': load of x[2] outside its shape [2]");
  CHECK(error("s: y[1, -1] = 0") ==
        "kernel @k: stage 's': store of y[1, -1] outside its shape [2, 2]");
  CHECK(error("s: y[1, 1] = t[2]") == "kernel @k: stage 's': t[2] is read before it is written");
  CHECK(error("s: y[1, 0] += 1") == "kernel @k: stage 's': y[1, 0] is read before it is written");
  CHECK(error("for i in 2 { s: y[0, i] = f32(3 // i) }") ==
        "kernel @k: stage 's': division by zero");
  CHECK(error("if x[2] > 0.0 { s: y[0, 0] = 0 }") ==
        "kernel @k: load of x[2] outside its shape [2]");
  CHECK(error("s: z[0] = 1").find("no buffer 'z'") != std::string::npos);
}

TEST_CASE("arguments and symbols are checked") {
  std::vector<KernelArgument> arguments = {values<float>({1, 2})};
  const char* text = "kernel @k[n](y: out f32[n]) { for i in n { s: y[i] = f32(i) } }";
  CHECK(run(text, arguments, {{"n", 2}}) == "");
  CHECK(run(text, arguments, {{"n", 3}}) == "kernel @k: argument 'y' needs 12 bytes, not 8");
  CHECK(run(text, arguments) == "kernel @k: symbol 'n' needs a value of at least 1");
  CHECK(run("kernel @k() {}", arguments) == "kernel @k takes 0 arguments, not 1");
  arguments.clear();
  CHECK(run(text, arguments, {{"n", 3}}) == "kernel @k: argument 'y' needs 12 bytes, not none");
}

TEST_CASE("threads, barriers, tokens and asynchronous copies") {
  const auto run_y = [](const std::string& body) {
    std::vector<KernelArgument> arguments = {values<float>({1, 2, 3, 4, 5, 6, 7, 8}),
                                             values<float>(std::vector<float>(8))};
    const std::string error = run(
        "kernel @k(x: in f32[8], y: out f32[8]) { temp t: f32[4] shared per b tokens q " + body +
            " }",
        arguments);
    return error.empty() ? read<float>(arguments[1]) : std::vector<float>();
  };
  const auto error_of = [](const std::string& body) {
    std::vector<KernelArgument> arguments = {values<float>({1, 2, 3, 4, 5, 6, 7, 8}),
                                             values<float>(std::vector<float>(8))};
    return run("kernel @k(x: in f32[8], y: out f32[8]) { temp t: f32[4] shared per b tokens q " +
                   body + " }",
               arguments);
  };
  const std::string mirror =
      "for b in 2 bind block { for i in 4 bind thread { s: t[i] = x[b * 4 + i] BARRIER u: y[b * 4 "
      "+ i] = t[3 - i] } }";
  const auto with = [&](const std::string& barrier) {
    return std::string(mirror).replace(mirror.find("BARRIER"), 7, barrier);
  };
  CHECK(run_y(with("barrier i")) == std::vector<float>{4, 3, 2, 1, 8, 7, 6, 5});
  CHECK(run_y(with("barrier b")) == std::vector<float>{4, 3, 2, 1, 8, 7, 6, 5});
  CHECK(error_of(with("")).find("kernel @k: stage") == 0);
  CHECK(error_of(
            "for b in 1 bind block { for i in 4 bind thread { s: t[0] = x[i] } u: y[0] = t[0] }") ==
        "kernel @k: stage 's': t[0] is written by b = 0, i = 1, and accessed by b = 0, i = 0, with "
        "nothing to order them");
  CHECK(run_y("for b in 1 bind block { for i in 8 { s: t[i % 4] = x[i] async signal q async wait q "
              "u: y[i] = t[i % 4] } }") == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(error_of("for b in 1 bind block { for i in 8 { s: t[i % 4] = x[i] async signal q async u: "
                 "y[i] = t[i % 4] wait q } }") ==
        "kernel @k: stage 'u': t[0] is read before it is written");
  CHECK(error_of("for b in 1 bind block { s: t[0] = x[0] async }") ==
        "kernel @k: asynchronous copies of stage 's' are never waited for");
  const std::string threads =
      "for b in 1 bind block { for i in 4 bind thread { s: t[i] = select(i < 3, x[i], 0.0) async } "
      "signal q async WAIT for j in 4 bind thread { u: y[j] = t[3 - j] } AFTER }";
  const auto waits = [&](std::string at, std::string after) {
    return std::string(threads)
        .replace(threads.find("AFTER"), 5, after)
        .replace(threads.find("WAIT"), 4, at);
  };
  CHECK(run_y(waits("wait q", "")) == std::vector<float>{0, 3, 2, 1, 0, 0, 0, 0});
  CHECK(error_of(waits("", "wait q")) == "kernel @k: stage 'u': t[3] is read before it is written");
  CHECK(error_of(
            "for b in 1 bind block { roles { one { wait q signal q } two { wait q signal q } } }")
            .find("nothing can go on: b = 0, one waits for a token of 'q'; b = 0, two waits") !=
        std::string::npos);
}

TEST_CASE("blocks by an instruction add pairs of products as it does") {
  const char* text = R"(kernel @k(a: in bf16[2], b: in bf16[2], c: in f32[1], y: out f32[1]) {
    s: y[0] = c[0]
    block dot by pairs { for k in 2 reduce { t: y[0] += f32(a[k]) * f32(b[k]) } }
  })";
  const auto sum = [&](PairRule rule, float c, std::array<float, 2> a, std::array<float, 2> b) {
    Target target;
    target.intrinsics.push_back({.name = "pairs", .semantics = {}, .emit = {}, .pairs = rule});
    const auto short_floats = [](std::array<float, 2> list) {
      return values<uint16_t>({f32_to_bf16(list[0]), f32_to_bf16(list[1])});
    };
    std::vector<KernelArgument> arguments = {short_floats(a), short_floats(b), values<float>({c}),
                                             values<float>({0})};
    auto kernel = parse_kernel(text);
    REQUIRE(bool(kernel));
    REQUIRE(error_text(interpret(*kernel, arguments, {}, &target)) == "");
    return read<float>(arguments[3])[0];
  };
  const std::array<float, 2> ones = {1, 1};
  // 1 + 2^-24 is half way between two numbers, 1 + 2^-24 + 1.5 * 2^-24 is not
  const std::array<float, 2> halves = {0x1p-24f, 0x1.8p-24f};
  CHECK(sum(PairRule::in_order, 1, halves, ones) == 1 + 0x1p-23f);
  CHECK(sum(PairRule::second_first, 1, halves, ones) == 1 + 0x1p-22f);
  CHECK(sum(PairRule::to_odd, 1, halves, ones) == 1 + 0x1p-23f);
  // Any remainder, however small, makes the last bit odd.
  const std::array<float, 2> little = {0x1p-60f, 0};
  CHECK(sum(PairRule::in_order, 1, little, ones) == 1);
  CHECK(sum(PairRule::second_first, 1, little, ones) == 1);
  CHECK(sum(PairRule::to_odd, 1, little, ones) == 1 + 0x1p-23f);
  CHECK(sum(PairRule::to_odd, -1, little, ones) == -1 + 0x1p-24f);
  CHECK(sum(PairRule::to_odd, 1 + 0x1p-23f, little, ones) == 1 + 0x1p-23f);
  // The rules treat subnormal numbers differently.
  const std::array<float, 2> small = {0x1p-70f, 0};
  CHECK(sum(PairRule::in_order, 0, small, {0x1p-70f, 0}) == 0x1p-140f);
  CHECK(sum(PairRule::second_first, 0, small, {0x1p-70f, 0}) == 0);
  CHECK(sum(PairRule::to_odd, 0x1p-127f, small, {0x1p-70f, 0}) == 0);
  // Results overflow.
  const std::array<float, 2> large = {0x1p127f, 0x1p127f};
  CHECK(std::isinf(sum(PairRule::to_odd, 0, large, ones)));
  CHECK(std::isnan(sum(PairRule::to_odd, 0, {0x1p127f, -0x1p127f}, {2, 2})));
}
