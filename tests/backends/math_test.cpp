// The elementary functions against the long double library: errors in units of the last place stay
// below what math.h promises.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/backends/harness.h"

using namespace tw;

namespace {
constexpr int kLanes = 16;

template <class T>
constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;

// y[i] = value(x[i], z[i]); the body runs on lanes, or on scalars.
Kernel elementwise(const char* name, DType t, int64_t count,
                   const std::function<Expr(Expr, Expr)>& value, bool lanes) {
  Kernel k;
  k.name = name;
  for (const char* buffer : {"x", "z", "y"}) {
    Buffer b;
    b.name = buffer, b.dtype = t, b.shape = {count};
    b.role = *buffer == 'y' ? BufferRole::output : BufferRole::input;
    k.buffers.push_back(b);
  }
  Expr at = var("i") * kLanes + var("l");
  stmt::Store s;
  s.label = "y", s.buffer = BufferId{2}, s.indices = {at};
  s.value = value(load(BufferId{0}, t, {at}), load(BufferId{1}, t, {at}));
  k.body = make_loop(
      "i", count / kLanes,
      make_loop("l", kLanes, make_store(s), lanes ? LoopKind::vector : LoopKind::serial));
  return k;
}

// Distance in units of the last place of the correctly rounded result; 0 for equal infinities and
// for two NaNs.
template <class T>
double ulps(T got, long double want) {
  T rounded = static_cast<T>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  T size = std::fabs(rounded);
  long double unit = std::nextafter(size, std::numeric_limits<T>::infinity()) -
                     static_cast<long double>(size);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / unit);
}

template <class T>
std::vector<T> samples(double low, double high, bool specials) {
  std::mt19937_64 random(7);
  std::vector<T> x;
  for (int i = 0; i < 40000; ++i)
    x.push_back(static_cast<T>(std::uniform_real_distribution<double>(low, high)(random)));
  for (int i = 0; i < 20000; ++i) {  // all magnitudes
    const double fraction = std::uniform_real_distribution<double>(1, 2)(random);
    const int exponent = int(random() % (sizeof(T) == 4 ? 280 : 2100)) -
                         (sizeof(T) == 4 ? 152 : 1076);
    T v = static_cast<T>(std::ldexp(fraction, exponent));
    if (random() & 1) v = -v;
    if (specials || (v >= low && v <= high)) x.push_back(v);
  }
  if (specials)
    for (T v : {T(0), T(-0.0), std::numeric_limits<T>::infinity(),
                -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(),
                std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::max(), T(1), T(-1),
                // The number nearest to a multiple of pi/2
                static_cast<T>(sizeof(T) == 8 ? 0x1.6ac5b262ca1ffp+849 : 0x1p30)})
      x.push_back(v);
  while (x.size() % kLanes) x.push_back(T(0.5));
  return x;
}

Target plain_target() { return baseline_target(Arch::x86_64); }

template <class T>
std::vector<T> run(const Target& target, const Kernel& kernel, std::vector<T> x, std::vector<T> z) {
  auto loaded = LoadedKernel::compile(target, kernel);
  REQUIRE_MESSAGE(bool(loaded), error_text(loaded.takeError()));
  std::vector<T> y(x.size());
  void* buffers[] = {x.data(), z.data(), y.data()};
  (*loaded)(buffers);
  return y;
}

struct Case {
  UnaryOp op;
  long double (*want)(long double);
  double low, high;
  bool specials;
  double f32_limit, f64_limit;
  bool subnormals = true;  // false: 0 may replace a subnormal result
};

template <class T>
void check(const Case& c, const Target& target, bool lanes, double limit) {
  std::vector<T> x = samples<T>(c.low, c.high, c.specials);
  Kernel k = elementwise(
      "f", kType<T>, static_cast<int64_t>(x.size()), [&](Expr a, Expr) { return unary(c.op, a); },
      lanes);
  std::vector<T> y = run(target, k, x, x);
  double worst = 0;
  T at = 0, got = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    long double want = c.want(x[i]);
    if (!c.subnormals && y[i] == 0 && want < 2 * std::numeric_limits<T>::min()) continue;
    double error = ulps(y[i], want);
    if (error > worst) worst = error, at = x[i], got = y[i];
  }
  CAPTURE(op_name(c.op));
  CAPTURE(sizeof(T));
  CAPTURE(at);
  CAPTURE(got);
  CHECK(worst <= limit);
  if (std::getenv("TW_PRINT_ULP"))
    std::printf("%-8s f%d %s %s: %.2f at %a\n", op_name(c.op), int(sizeof(T)) * 8,
                lanes ? "lanes" : "scalar", target.name.c_str(), worst, double(at));
}

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double normal_cdf(long double x) {
  return 0.5L * std::erfc(-x * 0.707106781186547524400844362104849039L);
}
long double rsqrt(long double x) { return 1 / std::sqrt(x); }

const Case kCases[] = {
    {UnaryOp::exp, std::exp, -110, 95, true, 2, 2},
    {UnaryOp::log, std::log, 0, 10, true, 2, 2},
    {UnaryOp::exp2, std::exp2, -130, 130, true, 2, 2, false},
    {UnaryOp::expm1, std::expm1, -110, 95, true, 2, 2},
    {UnaryOp::log1p, std::log1p, -1, 10, true, 2, 2},
    {UnaryOp::normal_cdf, normal_cdf, -15, 15, true, 6, 9, false},
    {UnaryOp::tanh, std::tanh, -12, 12, true, 4, 4},
    {UnaryOp::sigmoid, sigmoid, -90, 90, true, 3, 3, false},
    {UnaryOp::erf, std::erf, -6, 6, true, 6, 4},
    {UnaryOp::sin, std::sin, -1000000, 1000000, true, 2, 3},
    {UnaryOp::cos, std::cos, -1000000, 1000000, true, 2, 3},
    {UnaryOp::tan, std::tan, -100, 100, true, 4, 5},
    {UnaryOp::asin, std::asin, -1.1, 1.1, true, 4, 4},
    {UnaryOp::acos, std::acos, -1.1, 1.1, true, 4, 4},
    {UnaryOp::atan, std::atan, -10, 10, true, 3, 3},
    {UnaryOp::sqrt, std::sqrt, 0, 100, true, 0.51, 0.51},
    {UnaryOp::rsqrt, rsqrt, 0, 100, true, 1.51, 1.51},
    {UnaryOp::floor, std::floor, -100, 100, true, 0, 0},
    {UnaryOp::ceil, std::ceil, -100, 100, true, 0, 0},
    {UnaryOp::trunc, std::trunc, -100, 100, true, 0, 0},
    {UnaryOp::round, std::nearbyint, -100, 100, true, 0, 0},
};
}  // namespace

TEST_CASE("elementary functions keep their error bounds") {
  for (const Target& target : {host_target(), plain_target()})
    for (const Case& c : kCases)
      for (bool lanes : {true, false}) {
        check<float>(c, target, lanes, c.f32_limit);
        check<double>(c, target, lanes, c.f64_limit);
      }
}

template <class T>
void check_pow(const Target& target) {
  std::mt19937_64 random(3);
  std::vector<T> x, y;
  const T kInf = std::numeric_limits<T>::infinity(), kNaN = std::numeric_limits<T>::quiet_NaN();
  for (T a : {T(0), T(-0.0), T(1), T(-1), T(2), T(-2), T(0.5), T(-0.5), T(-3), kInf, -kInf, kNaN})
    for (T b : {T(0), T(1), T(-1), T(2), T(3), T(-3), T(0.5), T(-0.5), T(2.5), kInf, -kInf, kNaN})
      x.push_back(a), y.push_back(b);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(static_cast<T>(std::exp2(std::uniform_real_distribution<double>(-20, 20)(random))));
    y.push_back(static_cast<T>(std::uniform_real_distribution<double>(-8, 8)(random)));
  }
  while (x.size() % kLanes) x.push_back(1), y.push_back(1);
  auto power = [](Expr a, Expr b) { return binary(BinaryOp::pow, a, b); };
  std::vector<T> got = run(
      target, elementwise("f", kType<T>, static_cast<int64_t>(x.size()), power, true), x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CAPTURE(y[i]);
    CAPTURE(got[i]);
    long double want = std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    double exponent = std::fabs(double(y[i]) * std::log(std::fabs(double(x[i]))));
    CHECK(ulps(got[i], want) <=
          (sizeof(T) == 4 ? 1 : 2 + 3 * (std::isfinite(exponent) ? exponent : 0)));
  }
}

TEST_CASE("pow has C's special cases") {
  for (const Target& target : {host_target(), plain_target()}) {
    check_pow<float>(target);
    check_pow<double>(target);
  }
}

template <class T>
void check_mod(const Target& target) {
  std::mt19937_64 random(5);
  std::vector<T> x, y;
  const T kInf = std::numeric_limits<T>::infinity(), kMax = std::numeric_limits<T>::max(),
          kTiny = std::numeric_limits<T>::denorm_min();
  for (T a : {T(5.5), T(-5.5), T(0), T(-0.0), kInf, kMax, kTiny, T(1e10)})
    for (T b : {T(2), T(-2), T(0), kInf, kTiny * 3, T(0.1), kMax}) x.push_back(a), y.push_back(b);
  for (int i = 0; i < 3000; ++i) {
    x.push_back(static_cast<T>(
        std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random), int(random() % 120))));
    y.push_back(static_cast<T>(std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random),
                                          int(random() % 60) - 30)));
  }
  while (x.size() % kLanes) x.push_back(1), y.push_back(1);
  auto mod = [](Expr a, Expr b) { return binary(BinaryOp::mod, a, b); };
  std::vector<T> got = run(
      target, elementwise("f", kType<T>, static_cast<int64_t>(x.size()), mod, true), x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CAPTURE(y[i]);
    CHECK(ulps(got[i], std::fmod(static_cast<long double>(x[i]), static_cast<long double>(y[i]))) ==
          0);
  }
}

TEST_CASE("fmod is exact") {
  for (const Target& target : {host_target(), plain_target()}) {
    check_mod<float>(target);
    check_mod<double>(target);
  }
}
