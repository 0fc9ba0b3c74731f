// Element-wise importers against values worked out by hand or with <cmath>.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

const std::vector<float> kX = {-3, -1, -0.5f, 0, 0.25f, 1, 2, 4};
constexpr double kInf = std::numeric_limits<double>::infinity();

void check_function(const std::string& node, int opset, double (*expected)(double),
                    const std::vector<float>& x = kX) {
  CAPTURE(node);
  const auto n = static_cast<int64_t>(x.size());
  const std::vector<double> y = run_graph("g (float[" + std::to_string(n) + "] x) => (float[" +
                                              std::to_string(n) + "] y) { y = " + node + " }",
                                          {floats({n}, x)}, opset);
  REQUIRE(y.size() == x.size());
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(y[i] == doctest::Approx(expected(static_cast<double>(x[i]))).epsilon(1e-5));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("activations") {
  check_function("Relu(x)", 6, [](double x) { return std::max(x, 0.0); });
  check_function("Relu(x)", 14, [](double x) { return std::max(x, 0.0); });
  check_function("LeakyRelu<alpha = 0.2>(x)", 16, [](double x) { return x < 0 ? 0.2 * x : x; });
  check_function("Elu<alpha = 2.0>(x)", 6,
                 [](double x) { return x < 0 ? 2 * (std::exp(x) - 1) : x; });
  check_function("Selu(x)", 6, [](double x) {
    return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1));
  });
  check_function("Celu<alpha = 2.0>(x)", 12, [](double x) {
    return std::max(0.0, x) + std::min(0.0, 2 * (std::exp(x / 2) - 1));
  });
  check_function("Sigmoid(x)", 13, sigmoid);
  check_function("HardSigmoid(x)", 6, [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); });
  check_function("HardSwish(x)", 14,
                 [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); });
  check_function("Swish(x)", 24, [](double x) { return x * sigmoid(x); });
  check_function("Mish(x)", 18, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  check_function("Softplus(x)", 1, [](double x) { return std::log1p(std::exp(x)); });
  check_function("Softsign(x)", 1, [](double x) { return x / (1 + std::abs(x)); });
  check_function("ThresholdedRelu<alpha = 0.5>(x)", 10, [](double x) { return x > 0.5 ? x : 0.0; });
  check_function("Shrink<lambd = 0.75, bias = 0.5>(x)", 9, [](double x) {
    return x < -0.75 ? x + 0.5 : x > 0.75 ? x - 0.5 : 0.0;
  });
  check_function("Gelu(x)", 20,
                 [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  check_function("Gelu<approximate = \"tanh\">(x)", 20, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

TEST_CASE("integers: by the attributes' reals, truncated") {
  const Tensor x = ints({5}, {-4, -1, 0, 1, 4});
  CHECK(run_graph("g (int64[5] x) => (int64[5] y) { y = Shrink<lambd = 1.4, bias = -0.75>(x) }",
                  {x}) == std::vector<double>{-4, 0, 0, 0, 4});
  CHECK(run_graph("g (int64[5] x) => (int64[5] y) { y = Shrink<lambd = 0.5, bias = 1.5>(x) }",
                  {x}) == std::vector<double>{-2, 0, 0, 0, 2});
  CHECK(run_graph("g (int64[5] x) => (int64[5] y) { y = Erf(x) }", {x}) ==
        std::vector<double>{0, 0, 0, 0, 0});
}

TEST_CASE("softplus and sigmoid do not overflow") {
  const auto y = run_graph("g (float[2] x) => (float[2] y) { y = Softplus(x) }",
                           {floats({2}, {200, -200})});
  CHECK(y[0] == 200);
  CHECK(y[1] == doctest::Approx(0));
}

TEST_CASE("unary functions") {
  const std::vector<float> positive = {0.25f, 1, 2, 9}, small = {-0.9f, -0.25f, 0, 0.5f};
  check_function("Exp(x)", 13, [](double x) { return std::exp(x); });
  check_function("Log(x)", 13, [](double x) { return std::log(x); }, positive);
  check_function("Sqrt(x)", 13, [](double x) { return std::sqrt(x); }, positive);
  check_function("Reciprocal(x)", 13, [](double x) { return 1 / x; }, positive);
  check_function("Tanh(x)", 13, [](double x) { return std::tanh(x); });
  check_function("Erf(x)", 13, [](double x) { return std::erf(x); });
  check_function("Neg(x)", 13, [](double x) { return -x; });
  check_function("Abs(x)", 13, [](double x) { return std::abs(x); });
  check_function("Floor(x)", 13, [](double x) { return std::floor(x); });
  check_function("Ceil(x)", 13, [](double x) { return std::ceil(x); });
  check_function("Round(x)", 11, [](double x) { return std::nearbyint(x); });
  check_function("Sign(x)", 13, [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  check_function("Sin(x)", 7, [](double x) { return std::sin(x); });
  check_function("Sinh(x)", 9, [](double x) { return std::sinh(x); });
  check_function("Cosh(x)", 9, [](double x) { return std::cosh(x); });
  check_function("Asinh(x)", 9, [](double x) { return std::asinh(x); });
  check_function("Acosh(x)", 9, [](double x) { return std::acosh(x); }, {1, 1.5f, 10});
  check_function("Atanh(x)", 9, [](double x) { return std::atanh(x); }, small);
}

TEST_CASE("binary functions broadcast") {
  const std::vector<Tensor> in = {floats({2, 1}, {7, -7}), floats({3}, {2, -3, 4})};
  const auto run = [&](const std::string& op) {
    return run_graph("g (float[2,1] a, float[3] b) => (float[2,3] y) { y = " + op + "(a, b) }", in);
  };
  CHECK(run("Add") == std::vector<double>{9, 4, 11, -5, -10, -3});
  CHECK(run("Sub") == std::vector<double>{5, 10, 3, -9, -4, -11});
  CHECK(run("Mul") == std::vector<double>{14, -21, 28, -14, 21, -28});
  CHECK(run("Max") == std::vector<double>{7, 7, 7, 2, -3, 4});
  CHECK(run("Min") == std::vector<double>{2, -3, 4, -7, -7, -7});
  CHECK(run("Mod<fmod = 1>") == std::vector<double>{1, 1, 3, -1, -1, -3});
}

TEST_CASE("integer division truncates, Mod follows the divisor") {
  const std::vector<Tensor> in = {ints({4}, {7, -7, 7, -7}), ints({4}, {2, 2, -2, -3})};
  const auto run = [&](const std::string& op) {
    return run_graph("g (int64[4] a, int64[4] b) => (int64[4] y) { y = " + op + "(a, b) }", in);
  };
  CHECK(run("Div") == std::vector<double>{3, -3, -3, 2});
  CHECK(run("Mod") == std::vector<double>{1, 1, -1, -1});
  CHECK(run("Mod<fmod = 1>") == std::vector<double>{1, -1, 1, -1});
}

TEST_CASE("variadic functions") {
  const std::vector<Tensor> in = {floats({2}, {1, 8}), floats({2}, {2, 5}), floats({2}, {6, 2})};
  const auto run = [&](const std::string& op) {
    return run_graph(
        "g (float[2] a, float[2] b, float[2] c) => (float[2] y) { y = " + op + "(a, b, c) }", in);
  };
  CHECK(run("Sum") == std::vector<double>{9, 15});
  CHECK(run("Mean") == std::vector<double>{3, 5});
  CHECK(run("Max") == std::vector<double>{6, 8});
  CHECK(run("Min") == std::vector<double>{1, 2});
}

TEST_CASE("comparisons and logic") {
  const std::vector<Tensor> in = {floats({3}, {1, 2, 3}), floats({3}, {2, 2, 2})};
  const auto run = [&](const std::string& op) {
    return run_graph("g (float[3] a, float[3] b) => (bool[3] y) { y = " + op + "(a, b) }", in);
  };
  CHECK(run("Less") == std::vector<double>{1, 0, 0});
  CHECK(run("LessOrEqual") == std::vector<double>{1, 1, 0});
  CHECK(run("Greater") == std::vector<double>{0, 0, 1});
  CHECK(run("GreaterOrEqual") == std::vector<double>{0, 1, 1});
  CHECK(run("Equal") == std::vector<double>{0, 1, 0});
  const auto where = run_graph(
      "g (float[3] a, float[3] b) => (float[3] y) { l = Less(a, b) e = Equal(a, b) o = Or(l, e) n "
      "= Not(o) y = Where(n, a, b) }",
      in);
  CHECK(where == std::vector<double>{2, 2, 3});
}

TEST_CASE("Clip by attributes, inputs, and one side only") {
  const std::vector<Tensor> in = {floats({4}, {-9, -1, 1, 9})};
  CHECK(run_graph("g (float[4] x) => (float[4] y) { y = Clip<min = -2.0, max = 3.0>(x) }", in, 6) ==
        std::vector<double>{-2, -1, 1, 3});
  CHECK(run_graph("g (float[4] x) => (float[4] y) <float lo = {-2}, float hi = {3}> { y = Clip(x, "
                  "lo, hi) }",
                  in, 13) == std::vector<double>{-2, -1, 1, 3});
  CHECK(run_graph("g (float[4] x) => (float[4] y) <float hi = {3}> { y = Clip(x, , hi) }", in,
                  13) == std::vector<double>{-9, -1, 1, 3});
  // The attributes default to the largest finite numbers of f32.
  const auto inf = static_cast<float>(kInf);
  CHECK(run_graph("g (float[2] x) => (float[2] y) { y = Clip<max = 3.0>(x) }",
                  {floats({2}, {-inf, inf})},
                  6) == std::vector<double>{std::numeric_limits<float>::lowest(), 3});
}

TEST_CASE("Cast, Pow of mixed types, IsInf, PRelu, Dropout") {
  CHECK(run_graph("g (float[3] x) => (int64[3] y) { y = Cast<to = 7>(x) }",
                  {floats({3}, {-1.5f, 0.5f, 2.9f})}) == std::vector<double>{-1, 0, 2});
  CHECK(run_graph("g (float[2] x) => (float[2] y) <int64 e = {3}> { y = Pow(x, e) }",
                  {floats({2}, {2, -3})}) == std::vector<double>{8, -27});
  // f16 cannot hold 2.3, and f32 cannot hold 3 + 2^-26.
  CHECK(run_graph("g (float[1] x) => (float[1] y) <float e = {2.3}> { h = Cast<to = 10>(x) p = "
                  "Pow(h, e) y = Cast<to = 1>(p) }",
                  {floats({1}, {64})})[0] == 14264);
  const std::vector<double> cubes = run_graph(
      "g (float[1] x) => (float[2] y) <double e = {3.0000000149011612}, float three = {3}> { p = "
      "Pow(x, e) q = Pow(x, three) y = Concat<axis = 0>(p, q) }",
      {floats({1}, {1e10f})});
  CHECK(cubes[0] > cubes[1] * 1.0000002);
  const auto inf = static_cast<float>(kInf);
  CHECK(run_graph("g (float[3] x) => (bool[3] y) { y = IsInf<detect_negative = 0>(x) }",
                  {floats({3}, {-inf, 1, inf})}) == std::vector<double>{0, 0, 1});
  CHECK(run_graph("g (float[2,2] x) => (float[2,2] y) <float[2] s = {0.5, 2}> { y = PRelu(x, s) }",
                  {floats({2, 2}, {-2, -2, 3, -4})}) == std::vector<double>{-1, -4, 3, -8});
  CHECK(run_graph("g (float[2] x) => (float[2] y) { y, mask = Dropout(x) }",
                  {floats({2}, {1, 2})}) == std::vector<double>{1, 2});
  CHECK(run_graph("g (float[2] x) => (float[2] y) { z, m = Dropout(x) y = Add(z, m) }",
                  {floats({2}, {1, 2})}, 7) == std::vector<double>{2, 3});
}

}  // namespace
}  // namespace tw::test
