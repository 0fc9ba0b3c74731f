// Winograd's matrices against a convolution in f64, and the expressions made from the matrices
// against them.
#include <doctest/doctest.h>

#include <cmath>

#include "ir/kernel/interpreter.h"
#include "kernels/algorithms/winograd_transform.h"

using namespace tw;

namespace {

std::vector<double> product(const Matrix& m, const std::vector<double>& v) {
  std::vector<double> out;
  for (const auto& row : m) {
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) sum += row[i] * v[i];
    out.push_back(sum);
  }
  return out;
}

std::vector<double> numbers(size_t count, uint64_t seed) {
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    out.push_back(static_cast<double>(seed >> 40 & 0xff) / 16 - 8);
  }
  return out;
}

// Computes the product of matrix and values by expressions of its rows, in the interpreter.
std::vector<float> interpreted(const Matrix& matrix, const std::vector<double>& values) {
  Kernel k;
  k.name = "rows";
  auto count = static_cast<int64_t>(matrix.size());
  k.buffers = {
      {"x", DType::f32, {Expr(static_cast<int64_t>(values.size()))}, BufferRole::input, "global"},
      {"y", DType::f32, {Expr(count)}, BufferRole::output, "global"}};
  std::vector<Expr> loads;
  for (size_t i = 0; i < values.size(); ++i)
    loads.push_back(load(BufferId{0}, DType::f32, {Expr(static_cast<int64_t>(i))}));
  stmt::Store store;
  store.label = "y", store.buffer = BufferId{1}, store.indices = {var("i")},
  store.value = select_row(var("i"), linear_rows(matrix, loads));
  k.body = make_loop("i", count, make_store(std::move(store)));
  KernelArgument x, y;
  x.bytes.resize(values.size() * 4);
  y.bytes.resize(matrix.size() * 4);
  for (size_t i = 0; i < values.size(); ++i)
    reinterpret_cast<float*>(x.bytes.data())[i] = static_cast<float>(values[i]);
  std::vector<KernelArgument> arguments = {x, y};
  Error failed = interpret(k, arguments, {});
  REQUIRE_MESSAGE(!failed, error_text(std::move(failed)));
  const auto* out = reinterpret_cast<const float*>(arguments[1].bytes.data());
  return {out, out + matrix.size()};
}

}  // namespace

TEST_CASE("Winograd's matrices compute three-tap convolutions") {
  for (int stride : {1, 2})
    for (int tile : {2, 4, 6}) {
      CAPTURE(stride);
      CAPTURE(tile);
      WinogradTransform t = winograd_transform(tile, stride);
      CHECK(t.points == (stride == 1 ? tile + 2 : 2 * tile + 1));
      std::vector<double> d = numbers(static_cast<size_t>(t.points), 1), g = numbers(3, 2);
      std::vector<double> v = product(t.bt, d), u = product(t.g, g), m;
      for (size_t i = 0; i < v.size(); ++i) m.push_back(v[i] * u[i]);
      std::vector<double> y = product(t.at, m);
      REQUIRE(y.size() == static_cast<size_t>(tile));
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t x = i * static_cast<size_t>(stride);
        CHECK(y[i] ==
              doctest::Approx(d[x] * g[0] + d[x + 1] * g[1] + d[x + 2] * g[2]).epsilon(1e-9));
      }
    }
}

TEST_CASE("rows of a matrix, as expressions with shared halves, equal the matrix") {
  for (int stride : {1, 2})
    for (int tile : {2, 4, 6}) {
      CAPTURE(stride);
      CAPTURE(tile);
      WinogradTransform t = winograd_transform(tile, stride);
      for (const Matrix& matrix : {t.bt, t.at}) {
        std::vector<double> x = numbers(matrix[0].size(), 3), want = product(matrix, x);
        std::vector<float> got = interpreted(matrix, x);
        for (size_t i = 0; i < want.size(); ++i)
          CHECK(static_cast<double>(got[i]) == doctest::Approx(want[i]).epsilon(1e-5));
      }
    }
}
