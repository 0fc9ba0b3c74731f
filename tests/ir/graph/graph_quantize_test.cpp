// Quantize and Dequantize: ties, saturation, axes, zero points; tables of bytes; and the graph's
// checks of these.
#include "tests/ir/graph_testing.h"

namespace tw {
namespace {
using namespace tw::test;

Tensor scalar(DType dtype, double value) { return tensor(dtype, {}, {value}); }

}  // namespace

TEST_CASE("quantize rounds ties to even, then adds the zero point and saturates") {
  const Tensor x = tensor(DType::f32, {10},
                          {0.25, 0.75, 1.25, -0.25, -0.75, 0.2500001, 1000, -1000, INFINITY, NAN});
  CHECK(values(run_op(op::Quantize{DType::i8, 0},
                      {x, scalar(DType::f32, 0.5), scalar(DType::i8, 3)})) ==
        std::vector<double>{3, 5, 5, 3, 1, 4, 127, -128, 127, 0});
  CHECK(values(run_op(op::Quantize{DType::u8, 0},
                      {x, scalar(DType::f32, 0.5), scalar(DType::u8, 3)})) ==
        std::vector<double>{3, 5, 5, 3, 1, 4, 255, 0, 255, 0});
  CHECK(values(run_op(op::Quantize{DType::i8, 0}, {x, scalar(DType::f32, 0.5)}))[1] == 2);
  // The quotient is rounded to f32: here to 3.5, a tie, while in double it is 3.49999996.
  CHECK(values(run_op(op::Quantize{DType::i8, 0}, {scalar(DType::f32, 2.563256025314331),
                                                   scalar(DType::f32, 0.7323588728904724)})) ==
        std::vector<double>{4});
}

TEST_CASE("scales and zero points along an axis") {
  const Tensor x = tensor(DType::f32, {2, 3, 1}, {1, 1, 1, -1, -1, -1});
  const Tensor scale = tensor(DType::f32, {3}, {1, 0.5, 0.25}),
               zero = tensor(DType::u8, {3}, {10, 20, 30});
  const Tensor q = run_op(op::Quantize{DType::u8, 1}, {x, scale, zero});
  CHECK(values(q) == std::vector<double>{11, 22, 34, 9, 18, 26});
  CHECK(values(run_op(op::Dequantize{-2}, {q, scale, zero})) == values(x));
  CHECK(values(run_op(op::Dequantize{0},
                      {ints(DType::i32, {2}, {1 << 24, -7}), scalar(DType::f32, 0.5)})) ==
        std::vector<double>{1 << 23, -3.5});
}

TEST_CASE("a table holds the least byte's entry first") {
  std::vector<double> numbers;
  for (int i = 0; i < 256; ++i) numbers.push_back(i / 2.0);
  const Tensor table = tensor(DType::f32, {256}, numbers);
  CHECK(values(run_op(op::Lookup{}, {ints(DType::u8, {1, 3}, {0, 3, 255}), table})) ==
        std::vector<double>{0, 1.5, 127.5});
  CHECK(values(run_op(op::Lookup{}, {ints(DType::i8, {3}, {-128, 0, 127}), table})) ==
        std::vector<double>{0, 64, 127.5});
  const Tensor wide = ints(DType::i16, {1}, {3}), byte = ints(DType::i8, {1}, {3}),
               half = tensor(DType::f32, {128}, std::vector<double>(128));
  CHECK(error_of(try_op(op::Lookup{}, {&wide, &table})).find("i16, expected i8 or u8") !=
        std::string::npos);
  CHECK(error_of(try_op(op::Lookup{}, {&byte, &half})).find("256") != std::string::npos);
}

TEST_CASE("a transposed convolution of integers counts from its zero point, and sums are i32") {
  const Tensor x = ints(DType::u8, {1, 1, 2}, {200, 7}), w = ints(DType::i8, {1, 1, 2}, {100, -3});
  CHECK(values(run_op(op::ConvTranspose{{1}, {1}, {0, 0}, {0}, 1, 5}, {x, w})) ==
        std::vector<double>{19500, -385, -6});
}

TEST_CASE("what quantize, dequantize and integer products refuse") {
  const Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}), one = scalar(DType::f32, 1);
  const Tensor q = ints(DType::u8, {2, 3}, {1, 2, 3, 4, 5, 6}),
               pair = tensor(DType::f32, {2}, {1, 1}), wrong = scalar(DType::i8, 0);
  CHECK(error_of(try_op(op::Quantize{DType::i64, 0}, {&x, &one})).find("quantized type i64") !=
        std::string::npos);
  CHECK(error_of(try_op(op::Quantize{DType::u8, 0}, {&q, &one})).find("u8, expected f32") !=
        std::string::npos);
  CHECK(error_of(try_op(op::Quantize{DType::u8, 0}, {&x, &one, &wrong})).find("i8, expected u8") !=
        std::string::npos);
  CHECK(error_of(try_op(op::Quantize{DType::u8, 1}, {&x, &pair})).find("elements") !=
        std::string::npos);
  CHECK(error_of(try_op(op::Dequantize{2}, {&q, &pair})).find("axis") != std::string::npos);
  CHECK(error_of(try_op(op::Dequantize{0}, {&q, &q})).find("scale") != std::string::npos);
  CHECK(error_of(try_op(op::MatMul{false, false, 256}, {&q, &q})).find("a_zero is 256") !=
        std::string::npos);
  CHECK(error_of(try_op(op::MatMul{false, false, 1}, {&x, &x})).find("a_zero is 1") !=
        std::string::npos);
}

}  // namespace tw
