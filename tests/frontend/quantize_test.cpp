// Importers of quantized operators against hand-made values, and what they refuse.
#include <doctest/doctest.h>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

using Values = std::vector<double>;

Tensor bytes(DType dtype, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  REQUIRE(static_cast<size_t>(t.size()) == values.size());
  for (size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<int64_t>(i), values[i]);
  return t;
}

TEST_CASE("QuantizeLinear and DequantizeLinear: by tensor and by axis, from opset 10 on") {
  const std::vector<Tensor> in = {floats({4}, {0.25F, 0.75F, 1.25F, -2})};
  for (int opset : {10, 13, 19, 21, 23}) {
    CHECK(run_graph("g (float[4] x) => (uint8[4] y) <float s = {0.5}, uint8 z = {3}> { y = QuantizeLinear(x, s, z) }", in, opset) == Values{3, 5, 5, 0});
    CHECK(run_graph("g (int8[2] x) => (float[2] y) <float s = {0.5}, int8 z = {-1}> { y = DequantizeLinear(x, s, z) }",
                    {bytes(DType::i8, {2}, {-128, 3})}, opset) == Values{-63.5, 2});
  }
  CHECK(run_graph("g (float[4] x) => (uint8[4] y) <float s = {0.5}> { y = QuantizeLinear(x, s) }", in) == Values{0, 2, 2, 0});
  CHECK(run_graph("g (float[4] x) => (int8[4] y) <float s = {0.5}> { y = QuantizeLinear<output_dtype = 3>(x, s) }", in, 21) == Values{0, 2, 2, -4});
  const std::string scales = " <float[2] s = {0.5, 2}, int8[2] z = {0, 10}> { ";
  CHECK(run_graph("g (float[2,2] x) => (int8[2,2] y)" + scales + "y = QuantizeLinear<axis = 0>(x, s, z) }",
                  {floats({2, 2}, {1, 2, 3, 4})}) == Values{2, 4, 12, 12});
  CHECK(run_graph("g (float[2,2] x) => (int8[2,2] y)" + scales + "y = QuantizeLinear(x, s, z) }", {floats({2, 2}, {1, 2, 3, 4})}) == Values{2, 11, 6, 12});
  CHECK(run_graph("g (int8[2,2] x) => (float[2,2] y)" + scales + "y = DequantizeLinear<axis = -2>(x, s, z) }",
                  {bytes(DType::i8, {2, 2}, {2, 4, 12, 12})}) == Values{1, 2, 4, 4});
  CHECK(run_graph("g (int32[2] x) => (float[2] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }",
                  {bytes(DType::i32, {2}, {100001, -3})}) == Values{50000.5, -1.5});
}

TEST_CASE("QLinearConv: zero points, padding, a scale a channel, a bias") {
  // (x - 1) is {1, 2, 3}, padded {0, 1, 2, 3, 0}; sums with {1, 1}: {1, 3, 5, 3}, with {-1, 2}: {2, 3, 4, -3}; biases 1 and 0.
  CHECK(run_graph("g (uint8[1,1,3] x) => (uint8[1,2,4] y) <float xs = {0.5}, uint8 xz = {1}, int8[2,1,2] w = {1, 1, -1, 2}, float[2] ws = {1, 2}, "
                  "int8[2] wz = {0, 0}, float ys = {1}, uint8 yz = {10}, int32[2] b = {1, 0}> "
                  "{ y = QLinearConv<pads = [1, 1]>(x, xs, xz, w, ws, wz, ys, yz, b) }",
                  {bytes(DType::u8, {1, 1, 3}, {2, 3, 4})}) == Values{11, 12, 13, 12, 12, 13, 14, 7});
}

TEST_CASE("QLinearMatMul, MatMulInteger, ConvInteger") {
  const std::vector<Tensor> row = {bytes(DType::u8, {1, 2}, {3, 5})};
  CHECK(run_graph("g (uint8[1,2] a) => (int8[1,1] y) <float s = {0.5}, uint8 az = {1}, int8[2,1] b = {4, -1}, float bs = {2}, int8 bz = {0}, "
                  "float ys = {0.75}, int8 yz = {-7}> "
                  "{ y = QLinearMatMul(a, s, az, b, bs, bz, ys, yz) }", row) == Values{-2});
  CHECK(run_graph("g (uint8[1,2] a) => (int32[1,2] y) <uint8 az = {1}, int8[2,2] b = {1, 2, 3, -128}, int8[2] bz = {1, 127}> "
                  "{ y = MatMulInteger(a, b, az, bz) }", row) == Values{8, -1270});
  CHECK(run_graph("g (uint8[1,2] a) => (int32[1,1] y) <uint8[2,1] b = {200, 255}> { y = MatMulInteger(a, b) }", row) == Values{1875});
  CHECK(run_graph("g (uint8[2,1] a, uint8[2] az) => (int32[2,1] y) <uint8[1,1] b = {10}> { y = MatMulInteger(a, b, az) }",
                  {bytes(DType::u8, {2, 1}, {3, 5}), bytes(DType::u8, {2}, {1, 7})}) == Values{20, -20});
  const std::string conv = "g (uint8[1,1,2] x) => (int32[1,1,4] y) <uint8 xz = {4}, int8[1,1,3] w = {1, 2, 3}, int8 wz = {1}> "
                           "{ y = ConvInteger<pads = [2, 2]>(x, w, ";
  CHECK(run_graph(conv + "xz, wz) }", {bytes(DType::u8, {1, 1, 2}, {5, 6})}) == Values{2, 5, 2, 0});   // 1 2 with 0 1 2
}

TEST_CASE("a run-time zero point of ConvInteger pads too") {
  CHECK(run_graph("g (uint8[1,1,2] x, uint8 xz) => (int32[1,1,4] y) <int8[1,1,3] w = {1, 2, 3}> { y = ConvInteger<pads = [2, 2]>(x, w, xz) }",
                  {bytes(DType::u8, {1, 1, 2}, {5, 6}), bytes(DType::u8, {}, {4})}) == Values{3, 8, 5, 2});
}

TEST_CASE("what is refused of quantization") {
  const auto says = [](const std::string& graph, const char* words) { return error_of(graph_bytes(graph, 21)).find(words) != std::string::npos; };
  CHECK(says("g (float[4,2] x) => (uint8[4,2] y) <float[2,2] s = {1, 1, 1, 1}> { y = QuantizeLinear<axis = 0, block_size = 2>(x, s) }", "by block"));
  CHECK(says("g (float16[4] x) => (uint8[4] y) <float16 s = {1}> { y = QuantizeLinear(x, s) }", "scales of type f16"));
  CHECK(says("g (int32[4] x) => (uint8[4] y) <float s = {1}> { y = QuantizeLinear(x, s) }", "quantized i32"));
}

}  // namespace
}  // namespace tw::test
