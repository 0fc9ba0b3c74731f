// Importers of quantized operators against hand-made values, and inputs that they refuse.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

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
    CHECK(run_graph("g (float[4] x) => (uint8[4] y) <float s = {0.5}, uint8 z = {3}> { y = "
                    "QuantizeLinear(x, s, z) }",
                    in, opset) == Values{3, 5, 5, 0});
    CHECK(run_graph("g (int8[2] x) => (float[2] y) <float s = {0.5}, int8 z = {-1}> { y = "
                    "DequantizeLinear(x, s, z) }",
                    {bytes(DType::i8, {2}, {-128, 3})}, opset) == Values{-63.5, 2});
  }
  CHECK(run_graph("g (float[4] x) => (uint8[4] y) <float s = {0.5}> { y = QuantizeLinear(x, s) }",
                  in) == Values{0, 2, 2, 0});
  CHECK(run_graph("g (float[4] x) => (int8[4] y) <float s = {0.5}> { y = "
                  "QuantizeLinear<output_dtype = 3>(x, s) }",
                  in, 21) == Values{0, 2, 2, -4});
  CHECK(run_graph("g (int32[3] x) => (int8[3] y) <int32 s = {2}> { y = QuantizeLinear<output_dtype "
                  "= 3>(x, s) }",
                  {bytes(DType::i32, {3}, {7, -7, 900})}, 21) == Values{4, -4, 127});
  const std::string scales = " <float[2] s = {0.5, 2}, int8[2] z = {0, 10}> { ";
  CHECK(run_graph("g (float[2,2] x) => (int8[2,2] y)" + scales +
                      "y = QuantizeLinear<axis = 0>(x, s, z) }",
                  {floats({2, 2}, {1, 2, 3, 4})}) == Values{2, 4, 12, 12});
  CHECK(run_graph("g (float[2,2] x) => (int8[2,2] y)" + scales + "y = QuantizeLinear(x, s, z) }",
                  {floats({2, 2}, {1, 2, 3, 4})}) == Values{2, 11, 6, 12});
  CHECK(run_graph("g (int8[2,2] x) => (float[2,2] y)" + scales +
                      "y = DequantizeLinear<axis = -2>(x, s, z) }",
                  {bytes(DType::i8, {2, 2}, {2, 4, 12, 12})}) == Values{1, 2, 4, 4});
  CHECK(run_graph("g (int32[2] x) => (float[2] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }",
                  {bytes(DType::i32, {2}, {100001, -3})}) == Values{50000.5, -1.5});
  // A list of one scale counts for the whole tensor: a vector has no axis 1, the default.
  CHECK(run_graph("g (int32[2] x) => (float[2] y) <float[1] s = {0.5}, int32 z = {0}> { y = "
                  "DequantizeLinear(x, s, z) }",
                  {bytes(DType::i32, {2}, {7, -3})}) == Values{3.5, -1.5});
  CHECK(run_graph("g (float[2,2] x) => (int8[2,2] y) <float[1] s = {0.5}, int8[1] z = {1}> { y = "
                  "QuantizeLinear<axis = 0>(x, s, z) }",
                  {floats({2, 2}, {1, 2, 3, 4})}) == Values{3, 5, 7, 9});
}

TEST_CASE("QLinearConv: zero points, padding, a scale a channel, a bias") {
  // x - 1 is {1, 2, 3}, padded {0, 1, 2, 3, 0}. The sums with {1, 1} are {1, 3, 5, 3},
  // with {-1, 2} they are {2, 3, 4, -3}. The biases are 1 and 0.
  CHECK(run_graph("g (uint8[1,1,3] x) => (uint8[1,2,4] y) <float xs = {0.5}, uint8 xz = {1}, "
                  "int8[2,1,2] w = {1, 1, -1, 2}, float[2] ws = {1, 2}, "
                  "int8[2] wz = {0, 0}, float ys = {1}, uint8 yz = {10}, int32[2] b = {1, 0}> "
                  "{ y = QLinearConv<pads = [1, 1]>(x, xs, xz, w, ws, wz, ys, yz, b) }",
                  {bytes(DType::u8, {1, 1, 3}, {2, 3, 4})}) ==
        Values{11, 12, 13, 12, 12, 13, 14, 7});
}

TEST_CASE("QLinearMatMul, MatMulInteger, ConvInteger") {
  const std::vector<Tensor> row = {bytes(DType::u8, {1, 2}, {3, 5})};
  CHECK(run_graph("g (uint8[1,2] a) => (int8[1,1] y) <float s = {0.5}, uint8 az = {1}, int8[2,1] b "
                  "= {4, -1}, float bs = {2}, int8 bz = {0}, "
                  "float ys = {0.75}, int8 yz = {-7}> "
                  "{ y = QLinearMatMul(a, s, az, b, bs, bz, ys, yz) }",
                  row) == Values{-2});
  CHECK(run_graph("g (uint8[1,2] a) => (int32[1,2] y) <uint8 az = {1}, int8[2,2] b = {1, 2, 3, "
                  "-128}, int8[2] bz = {1, 127}> "
                  "{ y = MatMulInteger(a, b, az, bz) }",
                  row) == Values{8, -1270});
  CHECK(run_graph("g (uint8[1,2] a) => (int32[1,1] y) <uint8[2,1] b = {200, 255}> { y = "
                  "MatMulInteger(a, b) }",
                  row) == Values{1875});
  CHECK(run_graph("g (uint8[2,1] a, uint8[2] az) => (int32[2,1] y) <uint8[1,1] b = {10}> { y = "
                  "MatMulInteger(a, b, az) }",
                  {bytes(DType::u8, {2, 1}, {3, 5}), bytes(DType::u8, {2}, {1, 7})}) ==
        Values{20, -20});
  const std::string conv =
      "g (uint8[1,1,2] x) => (int32[1,1,4] y) <uint8 xz = {4}, int8[1,1,3] w = {1, 2, 3}, int8 wz "
      "= {1}> "
      "{ y = ConvInteger<pads = [2, 2]>(x, w, ";
  // Less the zero points, x is {1, 2} and w is {0, 1, 2}.
  CHECK(run_graph(conv + "xz, wz) }", {bytes(DType::u8, {1, 1, 2}, {5, 6})}) == Values{2, 5, 2, 0});
}

TEST_CASE("operators of com.microsoft have rows of their own domain") {
  const std::string graph =
      "<float s = {0.5}, uint8 z = {1}, float ys = {1}> { y = com.microsoft.QLinearAdd(a, s, z, b, "
      "s, , ys, z) }";
  const std::string header =
      "<ir_version: 8, opset_import: [\"\": 17, \"com.microsoft\": 1]> g (uint8[2] a, uint8[2] b) "
      "=> (uint8[2] y) ";
  CHECK(run_model(onnx_bytes(header + graph),
                  {bytes(DType::u8, {2}, {3, 5}), bytes(DType::u8, {2}, {4, 0})})
            .front() == Values{4, 3});
  CHECK(error_of(graph_bytes("g (float[1] x) => (float[1] y) { y = QLinearAdd(x) }"))
            .find("no such operator") != std::string::npos);
}

TEST_CASE("a run-time zero point of ConvInteger pads too") {
  CHECK(run_graph("g (uint8[1,1,2] x, uint8 xz) => (int32[1,1,4] y) <int8[1,1,3] w = {1, 2, 3}> { "
                  "y = ConvInteger<pads = [2, 2]>(x, w, xz) }",
                  {bytes(DType::u8, {1, 1, 2}, {5, 6}), bytes(DType::u8, {}, {4})}) ==
        Values{3, 8, 5, 2});
}

TEST_CASE("quantization by block, of 16-bit floats, to narrow types") {
  const std::vector<Tensor> in = {floats({2, 3}, {1, 2, 3, -4, 5, 60})};
  CHECK(run_graph("g (float[2,3] x) => (int8[2,3] y) <float[2,2] s = {1, 2, 0.5, 4}> { y = "
                  "QuantizeLinear<axis = 1, block_size = 2, output_dtype = 3>(x, s) }",
                  in, 21) == Values{1, 2, 2, -8, 10, 15});
  CHECK(run_graph(
            "g (int8[2,3] x) => (float[2,3] y) <float[1,3] s = {1, 2, 3}, int8[1,3] z = {0, 1, 2}> "
            "{ y = DequantizeLinear<axis = 0, block_size = 2>(x, s, z) }",
            {bytes(DType::i8, {2, 3}, {1, 2, 3, 4, 5, 6})}, 21) == Values{1, 2, 3, 4, 8, 12});
  CHECK(run_graph("g (float[4] x) => (float[4] y) <float s = {2}> { q = "
                  "QuantizeLinear<output_dtype = 22>(x, s) y = DequantizeLinear(q, s) }",
                  {floats({4}, {100, -100, 3, -5})}, 21) == Values{14, -16, 4, -4});
  CHECK(run_graph("g (float[4] x) => (float[4] y) <float s = {2}> { q = "
                  "QuantizeLinear<output_dtype = 17>(x, s) y = DequantizeLinear(q, s) }",
                  {floats({4}, {2000, -2000, 2.2F, 34})}, 21) == Values{896, -896, 2.25, 32});
  const std::string halves =
      "g (float[2] x) => (float[2] y) <float f = {0.5}> { s = Cast<to = 10>(f) h = Cast<to = "
      "10>(x) q = QuantizeLinear(h, s) "
      "d = DequantizeLinear(q, s) y = Cast<to = 1>(d) }";
  CHECK(run_graph(halves, {floats({2}, {3.3F, 1000})}, 21) == Values{3.5, 127.5});
}

TEST_CASE("Cast to narrow types: saturation, rounding of powers of two, integers that wrap") {
  const auto cast = [](const std::string& attributes, const std::vector<float>& values) {
    const std::string type = "float[" + std::to_string(values.size()) + "]";
    return run_graph("g (" + type + " x) => (" + type + " y) { n = Cast<" + attributes +
                         ">(x) y = Cast<to = 1>(n) }",
                     {floats({static_cast<int64_t>(values.size())}, values)}, 25);
  };
  CHECK(cast("to = 17", {1000, -1000, 1.0625F, 0.001F}) == Values{448, -448, 1, 0.001953125});
  CHECK(std::isnan(cast("to = 17, saturate = 0", {1000})[0]));
  CHECK(cast("to = 19, saturate = 0", {1e6F, 3}) ==
        Values{std::numeric_limits<double>::infinity(), 3});
  CHECK(cast("to = 23", {100, 0.25F, -5, 1.25F}) == Values{6, 0, -4, 1});
  CHECK(cast("to = 24", {3, 4, 5, 0.3F}) == Values{4, 4, 8, 0.5});
  CHECK(cast("to = 24, round_mode = \"down\"", {3, 4, 5, 0.3F}) == Values{2, 4, 4, 0.25});
  CHECK(cast("to = 24, round_mode = \"nearest\"", {3, 4, 5, 0.3F}) == Values{4, 4, 4, 0.25});
  CHECK(cast("to = 24", {3e38F}) == Values{0x1p127});
  CHECK(cast("to = 22", {-3.7F, 6.9F}) == Values{-3, 6});
  CHECK(run_graph("g (int32[3] x) => (int32[3] y) { n = Cast<to = 26>(x) y = Cast<to = 6>(n) }",
                  {bytes(DType::i32, {3}, {1, 2, 7})}, 25) == Values{1, -2, -1});
}

TEST_CASE("operators of com.microsoft on quantized tensors") {
  const auto run = [](const std::string& graph, const std::vector<Tensor>& in) {
    return run_model(onnx_bytes("<ir_version: 8, opset_import: [\"\": 17, \"com.microsoft\": 1]> " +
                                graph),
                     in)
        .front();
  };
  const Tensor row = bytes(DType::u8, {1, 4}, {2, 4, 6, 8});
  const std::string s =
      " <float s = {0.5}, uint8 z = {4}, float t = {0.25}, float[4] w = {1, 2, 3, 4}, uint8[4,1] b "
      "= {1, 2, 3, 4}, int32[1] c = {8}, float[1] f = {0.5}> ";
  CHECK(run("g (uint8[1,4] x) => (uint8[1,4] y)" + s +
                "{ y = com.microsoft.QLinearLeakyRelu<alpha = 0.5>(x, s, z, t, z) }",
            {row}) == Values{2, 4, 8, 12});
  CHECK(run("g (uint8[1,4] x) => (uint8[1,8] y)" + s +
                "{ y = com.microsoft.QLinearConcat<axis = 1>(s, z, x, s, z, x, t, z) }",
            {row}) == Values{2, 4, 6, 8, 3, 4, 5, 6});
  CHECK(run("g (uint8[1,4] x) => (float[1,1] y)" + s +
                "{ y = com.microsoft.QGemm<alpha = 2.0>(x, s, z, b, s, , c) }",
            {row}) == Values{14});
  CHECK(run("g (uint8[1,4] x) => (float[1,1] y)" + s +
                "{ y = com.microsoft.MatMulIntegerToFloat(x, b, s, t, z, , f) }",
            {row}) == Values{3});
  CHECK(run("g (float[1,4] x) => (float[1,1] y)" + s +
                "{ y = com.microsoft.DynamicQuantizeMatMul(x, b, t) }",
            {floats({1, 4}, {0, 255, 10, 20})}) == Values{155});
}

TEST_CASE("what is refused of quantization") {
  const auto says = [](const std::string& graph, const char* words) {
    return error_of(graph_bytes(graph, 21)).find(words) != std::string::npos;
  };
  CHECK(
      says("g (float[5,2] x) => (uint8[5,2] y) <float[2,2] s = {1, 1, 1, 1}> { y = "
           "QuantizeLinear<axis = 0, block_size = 2>(x, s) }",
           "2 scales for an extent of 5"));
  CHECK(
      says("g (float[4,2] x) => (uint8[4,2] y) <float[2,2] s = {1, 1, 1, 1}> { y = "
           "QuantizeLinear(x, s) }",
           "without block_size"));
  CHECK(
      says("g (float[4] x) => (int32[4] y) <float s = {1}> { y = QuantizeLinear<output_dtype = "
           "6>(x, s) }",
           "i32 as a quantized type"));
}

}  // namespace
}  // namespace tw::test
