// Operators against brute force and hand-made values, for cases that onnxruntime's f32 values
// (graph_onnx_values_test) do not cover.
#include <limits>
#include <random>

#include "ir/storage_types.h"
#include "tests/ir/graph_testing.h"

namespace tw {
namespace {
using namespace tw::test;

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

Tensor random_tensor(std::mt19937& rng, DType dtype, std::vector<int64_t> shape) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  std::uniform_int_distribution<int> value(-8, 8);
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, value(rng));
  return t;
}
int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

// Computes one output element by the definition, for two spatial axes.
double conv_at(const op::Conv& c, const Tensor& x, const Tensor& w, int64_t n, int64_t m,
               int64_t oy, int64_t ox) {
  int64_t per_group = w.shape[1], first = m / (w.shape[0] / c.group) * per_group;
  double sum = 0;
  for (int64_t i = 0; i < per_group; ++i)
    for (int64_t ky = 0; ky < w.shape[2]; ++ky)
      for (int64_t kx = 0; kx < w.shape[3]; ++kx) {
        int64_t y = oy * c.strides[0] + ky * c.dilations[0] - c.pads[0],
                xx = ox * c.strides[1] + kx * c.dilations[1] - c.pads[1];
        if (y < 0 || xx < 0 || y >= x.shape[2] || xx >= x.shape[3]) continue;
        sum += (x.at(((n * x.shape[1] + first + i) * x.shape[2] + y) * x.shape[3] + xx) -
                static_cast<double>(c.x_zero)) *
               w.at(((m * per_group + i) * w.shape[2] + ky) * w.shape[3] + kx);
      }
  return sum;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

}  // namespace

TEST_CASE("random convolutions equal their definition, in every number type") {
  std::mt19937 rng(1);
  for (int round = 0; round < 40; ++round) {
    DType dtype = static_cast<DType>(pick(rng, 0, kArithmeticDTypeCount - 2));
    int64_t group = pick(rng, 1, 3), in = pick(rng, 1, 3), out = pick(rng, 1, 3);
    op::Conv c{{pick(rng, 1, 3), pick(rng, 1, 3)}, {pick(rng, 1, 2), pick(rng, 1, 2)}, {}, group};
    for (int i = 0; i < 4; ++i) c.pads.push_back(pick(rng, 0, 4));
    Tensor x = random_tensor(rng, dtype,
                             {pick(rng, 1, 2), group * in, pick(rng, 3, 7), pick(rng, 3, 7)});
    Tensor w = random_tensor(rng, dtype, {group * out, in, pick(rng, 1, 2), pick(rng, 1, 2)});
    if (is_int(dtype) || pick(rng, 0, 1)) c.strides = {1, 2};
    const bool narrow = is_int(dtype) && dtype_bytes(dtype) < 4;  // sums in i32, and a zero point
    if (narrow) c.x_zero = pick(rng, is_signed_int(dtype) ? -5 : 0, 5);
    Tensor y = run_op(c, {x, w}), expected = Tensor::zeros(narrow ? DType::i32 : dtype, y.shape);
    int64_t flat = 0;
    for (int64_t n = 0; n < y.shape[0]; ++n)
      for (int64_t m = 0; m < y.shape[1]; ++m)
        for (int64_t oy = 0; oy < y.shape[2]; ++oy)
          for (int64_t ox = 0; ox < y.shape[3]; ++ox, ++flat) {
            double sum = conv_at(c, x, w, n, m, oy, ox);
            if (is_float(dtype)) expected.set(flat, sum);
            else expected.set_int(flat, static_cast<int64_t>(sum));
          }
    CHECK(y.dtype == expected.dtype);
    CHECK(values(y) == values(expected));
  }
}

TEST_CASE("transposed convolution is the adjoint of convolution") {
  std::mt19937 rng(2);
  for (int round = 0; round < 40; ++round) {
    int64_t group = pick(rng, 1, 2), in = pick(rng, 1, 3), out = pick(rng, 1, 3);
    op::Conv c{{pick(rng, 1, 3), pick(rng, 1, 3)}, {pick(rng, 1, 2), pick(rng, 1, 2)}, {}, group};
    for (int i = 0; i < 4; ++i) c.pads.push_back(pick(rng, 0, 1));
    Tensor x = random_tensor(rng, DType::f64, {1, group * in, pick(rng, 5, 8), pick(rng, 5, 8)});
    Tensor w = random_tensor(rng, DType::f64, {group * out, in, pick(rng, 1, 3), pick(rng, 1, 3)});
    Tensor y = run_op(c, {x, w}), z = random_tensor(rng, DType::f64, y.shape);
    op::ConvTranspose t{c.strides, c.dilations, c.pads, {}, group};
    for (size_t i = 0; i < 2; ++i) {  // input that the strides left over at the end
      int64_t reach = (y.shape[i + 2] - 1) * c.strides[i] + (w.shape[i + 2] - 1) * c.dilations[i] +
                      1 - c.pads[i] - c.pads[i + 2];
      t.output_padding.push_back(x.shape[i + 2] - reach);
    }
    Tensor back = run_op(t, {z, w});
    CHECK(back.shape == x.shape);
    CHECK(dot(y, z) == dot(x, back));
  }
}

TEST_CASE("integer sums are exact and wrap to their type") {
  Tensor a = ints(DType::i64, {1, 2}, {int64_t{1} << 62, 3}),
         b = ints(DType::i64, {2, 1}, {1, (int64_t{1} << 53) + 1});
  CHECK(run_op(op::MatMul{}, {a, b}).int_at(0) ==
        (int64_t{1} << 62) + 3 * ((int64_t{1} << 53) + 1));
  Tensor c = ints(DType::i8, {1, 2}, {100, 100}), d = ints(DType::i16, {2, 1}, {1, 1});
  CHECK(run_op(op::MatMul{}, {c, d}).int_at(0) == 200);  // sums of narrow integers are i32
  CHECK(run_op(op::MatMul{false, false, -28}, {c, d}).int_at(0) == 256);
  CHECK(run_op(op::MatMul{},
               {ints(DType::i32, {1, 2}, {1 << 30, 5}), ints(DType::i32, {2, 1}, {4, 1})})
            .int_at(0) == 5);
  Tensor e = ints(DType::u64, {2}, {-1, 5});  // 2^64 - 1
  CHECK(run_op(op::Reduce{ReduceKind::max, {0}, true}, {e}).int_at(0) == -1);
  CHECK(run_op(op::Reduce{ReduceKind::min, {0}, true}, {e}).int_at(0) == 5);
  CHECK(run_op(op::ArgReduce{false, 0, true, false}, {e}).int_at(0) == 0);
  CHECK(run_op(op::Reduce{ReduceKind::mean, {0}, false}, {ints(DType::i32, {2}, {-3, 0})})
            .int_at(0) == -1);
  CHECK(run_op(op::Reduce{ReduceKind::max, {0}, false}, {ints(DType::boolean, {2}, {0, 1})})
            .int_at(0) == 1);
}

TEST_CASE("unary operators on special values and integers") {
  auto apply = [](UnaryOp f, double x) {
    return run_op(op::Unary{f}, {tensor(DType::f32, {1}, {x})}).at(0);
  };
  CHECK(apply(UnaryOp::round, 2.5) == 2);
  CHECK(apply(UnaryOp::round, -3.5) == -4);
  CHECK(apply(UnaryOp::trunc, -2.7) == -2);
  // Halves of the last bit round away from zero, other numbers to the nearest.
  CHECK(apply(UnaryOp::tf32, 1 + 0x1p-11) == 1 + 0x1p-10);
  CHECK(apply(UnaryOp::tf32, -1 - 0x1p-11) == -1 - 0x1p-10);
  CHECK(apply(UnaryOp::tf32, 1 + 0x1p-11 - 0x1p-23) == 1);
  CHECK(apply(UnaryOp::tf32, 1 + 3 * 0x1p-11) == 1 + 0x1p-9);
  CHECK(apply(UnaryOp::tf32, 0x1.fffffep127) == kInf);
  CHECK(apply(UnaryOp::tf32, -kInf) == -kInf);
  CHECK(std::isnan(apply(UnaryOp::tf32, kNan)));
  CHECK(apply(UnaryOp::rsqrt, 4) == 0.5);
  CHECK(apply(UnaryOp::is_nan, kNan) == 1);
  CHECK(apply(UnaryOp::is_nan, kInf) == 0);
  CHECK(apply(UnaryOp::is_inf, -kInf) == 1);
  CHECK(std::isnan(apply(UnaryOp::sign, kNan)));
  CHECK(apply(UnaryOp::sigmoid, -kInf) == 0);
  CHECK(apply(UnaryOp::asin, 1) == doctest::Approx(1.5707963));
  CHECK(apply(UnaryOp::acos, 1) == 0);
  CHECK(run_op(op::Unary{UnaryOp::is_nan}, {tensor(DType::f16, {1}, {1})}).dtype == DType::boolean);
  Tensor i = ints(DType::i8, {3}, {-128, -5, 7});
  CHECK(values(run_op(op::Unary{UnaryOp::neg}, {i})) == std::vector<double>{-128, 5, -7});
  CHECK(values(run_op(op::Unary{UnaryOp::sign}, {i})) == std::vector<double>{-1, -1, 1});
  CHECK(values(run_op(op::Unary{UnaryOp::bit_not}, {ints(DType::u8, {2}, {0, 200})})) ==
        std::vector<double>{255, 55});
  CHECK(values(run_op(op::Unary{UnaryOp::logical_not}, {ints(DType::boolean, {2}, {0, 1})})) ==
        std::vector<double>{1, 0});
}

TEST_CASE("binary operators: NaN through min and max, integer division, comparisons") {
  auto apply = [](BinaryOp f, double a, double b) {
    return run_op(op::Binary{f}, {tensor(DType::f32, {1}, {a}), tensor(DType::f32, {1}, {b})})
        .at(0);
  };
  CHECK(std::isnan(apply(BinaryOp::max, 0, kNan)));
  CHECK(std::isnan(apply(BinaryOp::max, kNan, 0)));
  CHECK(std::isnan(apply(BinaryOp::min, 0, kNan)));
  CHECK(std::isnan(apply(BinaryOp::min, kNan, 0)));
  CHECK(apply(BinaryOp::floor_mod, -7, 3) == 2);
  CHECK(apply(BinaryOp::mod, -7, 3) == -1);
  CHECK(apply(BinaryOp::floor_div, -7, 2) == -4);
  CHECK(apply(BinaryOp::pow, 2, -1) == 0.5);
  CHECK(apply(BinaryOp::le, kNan, 1) == 0);
  CHECK(apply(BinaryOp::ne, kNan, kNan) == 1);
  auto integer = [](BinaryOp f, DType t, int64_t a, int64_t b) {
    return run_op(op::Binary{f}, {ints(t, {1}, {a}), ints(t, {1}, {b})}).int_at(0);
  };
  CHECK(integer(BinaryOp::div, DType::i32, -7, 2) == -3);
  CHECK(integer(BinaryOp::floor_div, DType::i32, -7, 2) == -4);
  CHECK(integer(BinaryOp::mod, DType::i32, -7, 2) == -1);
  CHECK(integer(BinaryOp::floor_mod, DType::i32, -7, 2) == 1);
  CHECK(integer(BinaryOp::div, DType::i64, std::numeric_limits<int64_t>::min(), -1) ==
        std::numeric_limits<int64_t>::min());
  CHECK(integer(BinaryOp::add, DType::u8, 250, 10) == 4);
  CHECK(integer(BinaryOp::shr, DType::i8, -128, 3) == -16);
  CHECK(integer(BinaryOp::shl, DType::u8, 3, 7) == 128);
  CHECK(integer(BinaryOp::logical_xor, DType::boolean, 1, 1) == 0);
  CHECK(integer(BinaryOp::lt, DType::u64, 1, -1) == 1);
  Tensor a = ints(DType::i32, {2}, {6, 1}), b = ints(DType::i32, {2}, {3, 0});
  CHECK(error_of(try_op(op::Binary{BinaryOp::div}, {&a, &b})) == "binary '': integer div by zero");
}

TEST_CASE("select and cast") {
  Tensor condition = ints(DType::boolean, {2, 1}, {1, 0}), a = tensor(DType::f32, {3}, {1, 2, 3}),
         b = tensor(DType::f32, {}, {kNan});
  Tensor chosen = run_op(op::Select{}, {condition, a, b});
  CHECK(chosen.shape == std::vector<int64_t>{2, 3});
  CHECK(chosen.at(2) == 3);
  CHECK(std::isnan(chosen.at(3)));
  Tensor x = tensor(DType::f32, {5}, {-1.7, 300.9, kNan, kInf, -kInf});
  CHECK(values(run_op(op::Cast{DType::u8, true}, {x})) == std::vector<double>{0, 255, 0, 255, 0});
  CHECK(values(run_op(op::Cast{DType::i8, true}, {x})) ==
        std::vector<double>{-1, 127, 0, 127, -128});
  CHECK(run_op(op::Cast{DType::i32, false}, {x}).int_at(0) == -1);
  CHECK(run_op(op::Cast{DType::i32, false}, {x}).int_at(1) == 300);
  CHECK(values(run_op(op::Cast{DType::boolean, false}, {tensor(DType::f32, {3}, {0, 0.5, -2})})) ==
        std::vector<double>{0, 1, 1});
  CHECK(run_op(op::Cast{DType::u8, false}, {ints(DType::i32, {1}, {-1})}).int_at(0) == 255);
  CHECK(run_op(op::Cast{DType::i64, true}, {ints(DType::u64, {1}, {-1})}).int_at(0) ==
        std::numeric_limits<int64_t>::max());
  CHECK(run_op(op::Cast{DType::f32, false}, {ints(DType::u64, {1}, {-1})}).at(0) ==
        18446744073709551616.0);
  CHECK(run_op(op::Cast{DType::u64, false}, {tensor(DType::f64, {1}, {1e19})}).int_at(0) ==
        static_cast<int64_t>(10000000000000000000u));
  CHECK(run_op(op::Cast{DType::f16, false}, {tensor(DType::f32, {1}, {2049})}).at(0) == 2048);
}

TEST_CASE("arg_reduce takes the first or the last of equal elements") {
  Tensor x = tensor(DType::f32, {2, 4}, {1, 5, 5, 0, 2, 2, 2, 2});
  CHECK(values(run_op(op::ArgReduce{false, 1, false, false}, {x})) == std::vector<double>{1, 0});
  CHECK(values(run_op(op::ArgReduce{false, 1, false, true}, {x})) == std::vector<double>{2, 3});
  CHECK(values(run_op(op::ArgReduce{true, -1, true, false}, {x})) == std::vector<double>{3, 0});
  CHECK(values(run_op(op::ArgReduce{true, 0, false, true}, {x})) ==
        std::vector<double>{0, 1, 1, 0});
}

TEST_CASE("data movement keeps bits in every type") {
  for (int i = 0; i < kDTypeCount; ++i) {
    DType dtype = static_cast<DType>(i);
    Tensor x = tensor(dtype, {2, 3}, {0.5, 1, 0.5, 1, 1, 0.5});  // integers are 0 and 1
    const double low = x.at(0);
    CHECK(values(run_op(op::Transpose{{1, 0}}, {x})) ==
          std::vector<double>{low, 1, 1, 1, low, low});
  }
  Tensor x = tensor(DType::f32, {2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(values(run_op(op::Slice{{1, 2}, {-1, -2}, {2, 2}}, {x})) ==
        std::vector<double>{5, 3, 2, 0});
  CHECK(values(run_op(op::Slice{{0, 1}, {1, 1}, {2, 1}}, {x})) == std::vector<double>{1, 4});
  CHECK(values(run_op(op::Expand{{2, 2, 3}}, {x})) ==
        std::vector<double>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  CHECK(values(run_op(op::Concat{-1}, {x, tensor(DType::f32, {2, 1}, {8, 9})})) ==
        std::vector<double>{0, 1, 2, 8, 3, 4, 5, 9});
  CHECK(values(run_op(op::Concat{0}, {x, tensor(DType::f32, {1, 3}, {7, 8, 9}),
                                      Tensor::zeros(DType::f32, {0, 3})})) ==
        std::vector<double>{0, 1, 2, 3, 4, 5, 7, 8, 9});
  Tensor picked = run_op(op::Gather{1}, {x, ints(DType::i32, {2, 2}, {2, 0, -1, 1})});
  CHECK(picked.shape == std::vector<int64_t>{2, 2, 2});
  CHECK(values(picked) == std::vector<double>{2, 0, 2, 1, 5, 3, 5, 4});
  CHECK(values(run_op(op::Gather{0}, {x, ints(DType::i64, {}, {-1})})) ==
        std::vector<double>{3, 4, 5});
  Tensor far = ints(DType::i64, {1}, {3});
  CHECK(values(run_op(op::Gather{1, true}, {x, far})) ==
        values(run_op(op::Gather{1}, {x, ints(DType::i64, far.shape, {2})})));
  CHECK(error_of(try_op(op::Gather{1}, {&x, &far})) == "gather '': index 3, expected -3 to 2");
  CHECK(values(run_op(op::Within{{0, 3}, "place"}, {far})) == std::vector<double>{3});
  CHECK(error_of(try_op(op::Within{{-1, 2}, "place"}, {&far})) ==
        "within '': place 3, expected -1 to 2");
  const Tensor both = ints(DType::boolean, {2}, {1, 0});
  CHECK(error_of(try_op(op::Within{{}, "a step of 0"}, {&both})) == "within '': a step of 0");
  CHECK(error_of(try_op(op::Within{{0, 1}, "flag"}, {&both})) ==
        "within 'y': range has 2 entries, expected 0");
  CHECK(values(
            run_op(op::Pad{PadMode::constant, {0, 1}, {1, 0}}, {x, tensor(DType::f32, {}, {9})})) ==
        std::vector<double>{9, 0, 1, 2, 9, 3, 4, 5, 9, 9, 9, 9});
  CHECK(values(run_op(op::Pad{PadMode::reflect, {0, 5}, {0, 0}},
                      {tensor(DType::f32, {1, 3}, {1, 2, 3})})) ==
        std::vector<double>{2, 1, 2, 3, 2, 1, 2, 3});
  CHECK(values(run_op(op::ShapeOf{}, {x})) == std::vector<double>{2, 3});
  CHECK(values(run_op(op::LayoutCast{1, 2}, {x})) == values(x));
}

TEST_CASE("empty extents and scalars") {
  Tensor none = Tensor::zeros(DType::f32, {0, 3}), scalar = tensor(DType::f32, {}, {2});
  CHECK(run_op(op::Unary{UnaryOp::exp}, {none}).shape == none.shape);
  CHECK(run_op(op::Binary{BinaryOp::mul}, {none, scalar}).shape == none.shape);
  CHECK(run_op(op::Binary{BinaryOp::mul}, {scalar, scalar}).at(0) == 4);
  CHECK(run_op(op::Transpose{{1, 0}}, {none}).shape == std::vector<int64_t>{3, 0});
  CHECK(run_op(op::Transpose{}, {scalar}).at(0) == 2);
  CHECK(run_op(op::Reshape{{3, 0, 7}}, {none}).shape == std::vector<int64_t>{3, 0, 7});
  CHECK(values(run_op(op::Reduce{ReduceKind::sum, {0}, false}, {none})) ==
        std::vector<double>{0, 0, 0});
  CHECK(values(run_op(op::Reduce{ReduceKind::max, {0}, false}, {none})) ==
        std::vector<double>{-kInf, -kInf, -kInf});
  CHECK(values(run_op(op::Reduce{ReduceKind::min, {0}, false},
                      {Tensor::zeros(DType::u8, {0, 1})})) == std::vector<double>{255});
  CHECK(values(run_op(op::Reduce{ReduceKind::max, {0}, false},
                      {Tensor::zeros(DType::i16, {0, 1})})) == std::vector<double>{-32768});
  CHECK(values(run_op(op::MatMul{}, {Tensor::zeros(DType::f32, {2, 0}), none})) ==
        std::vector<double>(6, 0.0));
  CHECK(run_op(op::MatMul{}, {none, Tensor::zeros(DType::f32, {3, 0})}).shape ==
        std::vector<int64_t>{0, 0});
  CHECK(run_op(op::Softmax{0}, {none}).shape == none.shape);
  CHECK(run_op(op::Softmax{1}, {none}).shape == none.shape);
  CHECK(run_op(op::LayerNorm{1}, {none, Tensor::zeros(DType::f32, {3})}).shape == none.shape);
  CHECK(run_op(op::Gather{0}, {tensor(DType::f32, {2}, {1, 2}), Tensor::zeros(DType::i64, {0})})
            .shape == std::vector<int64_t>{0});
  CHECK(run_op(op::Slice{{0, 0}, {1, 1}, {0, 2}}, {none}).shape == std::vector<int64_t>{0, 2});
  CHECK(run_op(op::Expand{{0, 3}}, {tensor(DType::f32, {1, 3}, {1, 2, 3})}).size() == 0);
  op::Conv conv{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1};
  CHECK(run_op(conv,
               {Tensor::zeros(DType::f32, {0, 1, 3, 3}), Tensor::zeros(DType::f32, {2, 1, 3, 3})})
            .shape == std::vector<int64_t>{0, 2, 1, 1});
  CHECK(values(run_op(
            conv, {Tensor::zeros(DType::f32, {1, 0, 1, 1}), Tensor::zeros(DType::f32, {2, 0, 1, 1}),
                   tensor(DType::f32, {2}, {3, 4})})) == std::vector<double>{3, 4});
  op::Pool pool{PoolKind::max, {2, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}, false, false};
  CHECK(run_op(pool, {Tensor::zeros(DType::f32, {0, 1, 3, 3})}).shape ==
        std::vector<int64_t>{0, 1, 2, 2});
}

TEST_CASE("a NaN comes through reductions, pools and softmax, and is found first") {
  const Tensor x = tensor(DType::f32, {1, 1, 4}, {5, kNan, 1, kNan});
  for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min, ReduceKind::sum})
    CHECK(std::isnan(run_op(op::Reduce{kind, {2}, false}, {x}).at(0)));
  const op::Pool pool{PoolKind::max, {2}, {2}, {1}, {0, 0}, false, false};
  CHECK(std::isnan(run_op(pool, {x}).at(0)));
  CHECK(std::isnan(run_op(pool, {x}).at(1)));
  for (const bool smallest : {false, true}) {
    CHECK(run_op(op::ArgReduce{smallest, 2, false, false}, {x}).int_at(0) == 1);
    CHECK(run_op(op::ArgReduce{smallest, 2, false, true}, {x}).int_at(0) == 3);
  }
  const Tensor masked = tensor(DType::f32, {1, 2}, {kNan, -kInf});
  CHECK(std::isnan(run_op(op::Softmax{1, false, true}, {masked}).at(1)));
}

TEST_CASE("casts of NaN, of infinities and of numbers beyond an integer's range") {
  const Tensor x = tensor(DType::f32, {5}, {kNan, kInf, -kInf, 3e9, -1});
  const auto cast = [&](DType to) { return values(run_op(op::Cast{to}, {x})); };
  CHECK(cast(DType::i32) == std::vector<double>{0, 2147483647, -2147483648, 2147483647, -1});
  CHECK(cast(DType::i8) == std::vector<double>{0, -1, 0, -1, -1});
  CHECK(cast(DType::u16) == std::vector<double>{0, 65535, 0, 65535, 65535});
  CHECK(cast(DType::u32) == std::vector<double>{0, 4294967295, 0, 3e9, 4294967295});
  CHECK(cast(DType::boolean) == std::vector<double>{1, 1, 1, 1, 1});
}

TEST_CASE("pooling of integers; padding never wins a maximum") {
  op::Pool pool{PoolKind::max, {2}, {1}, {1}, {1, 1}, false, false};
  CHECK(values(run_op(pool, {ints(DType::i8, {1, 1, 3}, {-5, -7, -2})})) ==
        std::vector<double>{-5, -5, -2, -2});
  pool.kind = PoolKind::average;
  CHECK(values(run_op(pool, {ints(DType::i32, {1, 1, 3}, {-5, -6, 2})})) ==
        std::vector<double>{-5, -5, -2, 2});
  pool.count_include_pad = true;
  CHECK(values(run_op(pool, {ints(DType::i32, {1, 1, 3}, {-5, -6, 2})})) ==
        std::vector<double>{-2, -5, -2, 1});
}

TEST_CASE("half types round once, from double") {
  Tensor a = tensor(DType::f16, {1, 3}, {2048, 1, 1}), ones = tensor(DType::f16, {3, 1}, {1, 1, 1});
  CHECK(run_op(op::MatMul{}, {a, ones}).at(0) == 2050);  // f16 sums would stay at 2048
  Tensor norm = run_op(op::BatchNorm{0},
                       {tensor(DType::f32, {1, 2, 1}, {3, 4}), tensor(DType::f32, {2}, {2, 1}),
                        tensor(DType::f32, {2}, {1, 0}), tensor(DType::f32, {2}, {1, 2}),
                        tensor(DType::f32, {2}, {4, 1})});
  CHECK(values(norm) == std::vector<double>{3, 2});
}

}  // namespace tw
