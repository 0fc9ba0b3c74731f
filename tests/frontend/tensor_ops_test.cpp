// Importers of gathers, running sums, einsum, sampling, windows and transforms, against known
// values.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

Tensor counted(std::vector<int64_t> shape, float first = 0) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return floats(std::move(shape), values);
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    CHECK(std::fabs(got[i] - expected[i]) <= 1e-5 + 1e-5 * std::fabs(expected[i]));
}

}  // namespace

TEST_CASE("constant indices outside of their axis are errors of the import") {
  const auto error = [](const std::string& body) {
    return error_of(graph_bytes("g (float[4,8] x, float[1,1] u) => (float[A,B] y) " + body));
  };
  const auto says = [](const std::string& text, const char* index) {
    return text.find(std::string("index ") + index +
                     " along axis 0 of f32[4, 8], expected -4 to 3") != std::string::npos;
  };
  for (const char* index : {"4", "-5", "1000", "1099511627776"}) {
    const std::string two = std::string("<int64[1,1] i = {") + index + "}> ",
                      one = std::string("<int64[1] i = {") + index + "}> ";
    CAPTURE(index);
    CHECK(says(error(one + "{ y = Gather(x, i) }"), index));
    CHECK(says(error(two + "{ y = GatherElements(x, i) }"), index));
    CHECK(says(error(two + "{ y = GatherND(x, i) }"), index));
    CHECK(says(error(two + "{ y = ScatterElements(x, i, u) }"), index));
  }
  CHECK(error("<int64[2] i = {-4, 3}> { y = Gather(x, i) }").empty());
}

TEST_CASE("a shape of more elements than can be counted is told so") {
  CHECK(error_of(graph_bytes("g (float[4,4] x) => (float[A,B,C] y) <int64[3] s = {4294967296, "
                             "4294967296, -1}> { y = Reshape(x, s) }"))
            .find("more elements than can be counted") != std::string::npos);
  CHECK(error_of(graph_bytes("g (float[4,4] x) => (float[A,B] y) <int64[2] s = {4294967296, "
                             "4294967296}> { y = Reshape(x, s) }"))
            .find("16 elements, expected more than 2^63") != std::string::npos);
}

TEST_CASE("GatherElements, GatherND, ReverseSequence") {
  const std::vector<Tensor> in = {counted({2, 3})};
  check_close(run_graph("g (float[2,3] x) => (float[2,2] y) <int64[2,2] i = {0, -1, 1, 1}> { y = "
                        "GatherElements<axis = 1>(x, i) }",
                        in),
              {0, 2, 4, 4});
  check_close(
      run_graph(
          "g (float[2,3] x) => (float[2] y) <int64[2,2] i = {0, 2, 1, -3}> { y = GatherND(x, i) }",
          in),
      {2, 3});
  check_close(
      run_graph("g (float[2,3] x) => (float[1,3] y) <int64[1,1] i = {1}> { y = GatherND(x, i) }",
                in),
      {3, 4, 5});
  check_close(run_graph("g (float[2,3] x) => (float[2] y) <int64[2,1] i = {2, 0}> { y = "
                        "GatherND<batch_dims = 1>(x, i) }",
                        in),
              {2, 3});
  check_close(run_graph("g (float[2,3] x) => (float[2,3] y) <int64[3] n = {1, 2, 2}> { y = "
                        "ReverseSequence(x, n) }",
                        in),
              {0, 4, 5, 3, 1, 2});
}

TEST_CASE("CumSum and CumProd; an axis that is known while running only") {
  const std::vector<Tensor> in = {counted({2, 3}, 1)};
  check_close(
      run_graph("g (float[2,3] x) => (float[2,3] y) <int64 a = {1}> { y = CumSum(x, a) }", in),
      {1, 3, 6, 4, 9, 15});
  check_close(run_graph("g (float[2,3] x) => (float[2,3] y) <int64 a = {-1}> { y = "
                        "CumSum<exclusive = 1, reverse = 1>(x, a) }",
                        in),
              {5, 3, 0, 11, 6, 0});
  check_close(
      run_graph("g (float[2,3] x) => (float[2,3] y) <int64 a = {0}> { y = CumProd(x, a) }", in, 26),
      {1, 2, 3, 4, 10, 18});
  check_close(run_graph("g (float[2,3] x, int64 a) => (float[2,3] y) { y = CumSum(x, a) }",
                        {in[0], ints({}, {-2})}),
              {1, 2, 3, 5, 7, 9});
}

TEST_CASE("Einsum: products, diagonals, ellipsis, implicit output, three operands") {
  const std::vector<Tensor> one = {counted({2, 2}, 1)},
                            two = {counted({2, 2}, 1), counted({2, 2}, 5)};
  const std::string pair =
      "g (float[2,2] x, float[2,2] z) => (float[M,N] y) { y = Einsum<equation = ";
  check_close(run_graph(pair + "\"ij,jk->ik\">(x, z) }", two), {19, 22, 43, 50});
  check_close(run_graph(pair + "\"ij, jk\">(x, z) }", two), {19, 22, 43, 50});
  check_close(run_graph(pair + "\"ij,ij->ij\">(x, z) }", two), {5, 12, 21, 32});
  check_close(run_graph("g (float[2,2] x, float[2,2] z) => (float y) { y = Einsum<equation = "
                        "\"ij,ij->\">(x, z) }",
                        two),
              {70});
  check_close(run_graph("g (float[2,2] x) => (float y) { y = Einsum<equation = \"ii\">(x) }", one),
              {5});
  check_close(
      run_graph("g (float[2,2] x) => (float[2] y) { y = Einsum<equation = \"ii->i\">(x) }", one),
      {1, 4});
  check_close(
      run_graph("g (float[2,2] x) => (float[2,2] y) { y = Einsum<equation = \"ij->ji\">(x) }", one),
      {1, 3, 2, 4});
  check_close(
      run_graph("g (float[2,2] x) => (float[2] y) { y = Einsum<equation = \"ij->j\">(x) }", one),
      {4, 6});
  check_close(run_graph("g (float[3,2,2] x, float[2] z) => (float[3,2] y) { y = Einsum<equation = "
                        "\"...ij,j->...i\">(x, z) }",
                        {counted({3, 2, 2}), floats({2}, {1, 10})}),
              {10, 32, 54, 76, 98, 120});
  check_close(run_graph("g (float[2,2] x, float[2,2] z) => (float[2] y) <float[2] v = {1, 10}> { y "
                        "= Einsum<equation = \"ij,jk,k->i\">(x, z, v) }",
                        two),
              {239, 543});
}

TEST_CASE("Resize: antialias, exclude_outside, a region, aspect ratio, integers") {
  const std::vector<Tensor> in = {counted({1, 1, 1, 4}, 1)};
  const std::string head = "g (float[1,1,1,4] x) => (float[1,1,M,N] y) ";
  check_close(run_graph(head + "<float[4] s = {1, 1, 1, 0.5}> { y = Resize<mode = \"linear\", "
                               "antialias = 1>(x, , s) }",
                        in, 18),
              {1.625, 3.375});
  check_close(run_graph(head + "<float[4] s = {1, 1, 1, 0.75}> { y = Resize<mode = \"cubic\", "
                               "cubic_coeff_a = -0.5, exclude_outside = 1>(x, , s) }",
                        in, 18),
              {1.1028444, 2.5, 3.8971558});
  check_close(
      run_graph(head + "<float[8] r = {0, 0, 0, 0.5, 1, 1, 1, 2}, int64[4] z = {1, 1, 1, 3}> "
                       "{ y = Resize<mode = \"linear\", coordinate_transformation_mode = "
                       "\"tf_crop_and_resize\", extrapolation_value = 9.0>(x, r, , z) }",
                in, 18),
      {2.5, 9, 9});
  const std::vector<double> kept = run_graph(
      "g (float[1,1,2,4] x) => (float[1,1,M,N] y) <int64[2] z = {8, 8}> { y = Resize<axes = [2, "
      "3], keep_aspect_ratio_policy = \"not_larger\">(x, , , z) }",
      {counted({1, 1, 2, 4})}, 18);
  CHECK(kept.size() == 32);
}

TEST_CASE("GridSample, AffineGrid, DeformConv") {
  const std::vector<Tensor> in = {counted({1, 1, 2, 2}),
                                  floats({1, 1, 3, 2}, {0, 0, -1, -1, 2, 2})};
  const std::string head =
      "g (float[1,1,2,2] x, float[1,1,3,2] grid) => (float[1,1,1,3] y) { y = GridSample<";
  check_close(run_graph(head + "align_corners = 1>(x, grid) }", in, 16), {1.5, 0, 0.75});
  check_close(run_graph(head + "align_corners = 1, padding_mode = \"border\">(x, grid) }", in, 16),
              {1.5, 0, 3});
  check_close(
      run_graph(head + "align_corners = 1, padding_mode = \"reflection\">(x, grid) }", in, 16),
      {1.5, 0, 1.5});
  check_close(run_graph(head + "align_corners = 1, mode = \"nearest\">(x, grid) }", in, 16),
              {0, 0, 0});
  check_close(run_graph("g (float[1,2,3] t) => (float[1,2,2,2] y) <int64[4] s = {1, 1, 2, 2}> { y "
                        "= AffineGrid(t, s) }",
                        {floats({1, 2, 3}, {1, 0, 0, 0, 2, 1})}, 20),
              {-0.5, 0, 0.5, 0, -0.5, 2, 0.5, 2});
  check_close(
      run_graph("g (float[1,1,3,3] x, float[1,8,2,2] o) => (float[1,1,2,2] y) <float[1,1,2,2] w = "
                "{1, 1, 1, 1}> { y = DeformConv(x, w, o) }",
                {counted({1, 1, 3, 3}), floats({1, 8, 2, 2}, std::vector<float>(32, 0))}, 19),
      {8, 12, 20, 24});
}

TEST_CASE("BitCast") {
  check_close(run_graph("g (float[1] x) => (int32[1] y) { y = BitCast<to = 6>(x) }",
                        {floats({1}, {1})}, 26),
              {0x3f800000});
}

TEST_CASE("MaxPool's indices are of elements, where all of a window are the lowest too") {
  const std::string head =
      "g (uint8[1,1,3,3] x) => (int64[1,1,2,2] i) { y, i = MaxPool<kernel_shape = "
      "[2, 2], pads = [1, 1, 1, 1], ";
  const std::vector<Tensor> zeros = {Tensor::zeros(DType::u8, {1, 1, 3, 3})};
  check_close(run_graph(head + "strides = [2, 2]>(x) }", zeros), {0, 1, 3, 4});
  check_close(run_graph(head + "strides = [2, 2], dilations = [2, 2]>(x) }", zeros), {4, 4, 4, 4});
}

TEST_CASE("MaxPool's indices, LpPool, Col2Im, CenterCropPad") {
  const std::vector<Tensor> in = {counted({1, 1, 3, 3})};
  check_close(
      run_graph(
          "g (float[1,1,3,3] x) => (int64[1,1,2,2] i) { y, i = MaxPool<kernel_shape = [2, 2]>(x) }",
          in),
      {4, 5, 7, 8});
  check_close(run_graph("g (float[1,1,3,3] x) => (int64[1,1,2,2] i) { y, i = MaxPool<kernel_shape "
                        "= [2, 2], storage_order = 1>(x) }",
                        in),
              {4, 7, 5, 8});
  check_close(run_graph("g (float[1,1,3,3] x) => (float[1,1,2,2] y) { y = LpPool<kernel_shape = "
                        "[2, 2], p = 1>(x) }",
                        in),
              {8, 12, 20, 24});
  check_close(run_graph("g (float[1,4,4] x) => (float[1,1,3,3] y) <int64[2] s = {3, 3}, int64[2] b "
                        "= {2, 2}> { y = Col2Im(x, s, b) }",
                        {floats({1, 4, 4}, std::vector<float>(16, 1))}, 18),
              {1, 2, 1, 2, 4, 2, 1, 2, 1});
  check_close(run_graph("g (float[1,1,3,3] x) => (float[1,1,1,4] y) <int64[2] s = {1, 4}> { y = "
                        "CenterCropPad<axes = [2, 3]>(x, s) }",
                        in, 18),
              {3, 4, 5, 0});
}

TEST_CASE("DFT of every kind of length equals its definition") {
  for (const int64_t length : {4, 12, 130, 512, 263}) {
    const Tensor x = [&] {
      std::vector<float> values;
      for (int64_t i = 0; i < 2 * length; ++i)
        values.push_back(static_cast<float>((i * 7919) % 13) - 6);
      return floats({1, length, 2}, values);
    }();
    const std::string size = std::to_string(length);
    for (const bool inverse : {false, true}) {
      const std::vector<double> y = run_graph(
          "g (float[1," + size + ",2] x) => (float[1," + size +
              ",2] y) { y = DFT<axis = 1, inverse = " + (inverse ? "1" : "0") + ">(x) }",
          {x});
      double worst = 0;
      for (int64_t k = 0; k < length; ++k) {
        std::complex<double> sum;
        for (int64_t t = 0; t < length; ++t) {
          const double angle = (inverse ? 2 : -2) * M_PI * static_cast<double>(k * t % length) /
                               static_cast<double>(length);
          sum += std::complex<double>(x.at(2 * t), x.at(2 * t + 1)) * std::polar(1.0, angle);
        }
        if (inverse) sum /= static_cast<double>(length);
        worst = std::max(worst,
                         std::abs(sum - std::complex<double>(y[static_cast<size_t>(2 * k)],
                                                             y[static_cast<size_t>(2 * k) + 1])));
      }
      CHECK(worst < (inverse ? 1e-4 : 1e-4 * static_cast<double>(length)));
    }
  }
}

TEST_CASE("half of a spectrum and back, windows") {
  for (const int64_t length : {6, 7, 150}) {
    const std::string size = std::to_string(length);
    const Tensor x = counted({1, length, 1}, -3);
    const std::vector<double> y = run_graph("g (float[1," + size + ",1] x) => (float[1," + size +
                                                ",1] y) <int64 n = {" + size +
                                                "}> {\n"
                                                "f = DFT<axis = 1, onesided = 1>(x)\ny = DFT<axis "
                                                "= 1, onesided = 1, inverse = 1>(f, n) }",
                                            {x});
    std::vector<double> expected;
    for (int64_t i = 0; i < length; ++i) expected.push_back(x.at(i));
    REQUIRE(y.size() == expected.size());
    for (size_t i = 0; i < y.size(); ++i) CHECK(std::fabs(y[i] - expected[i]) < 1e-3);
  }
  check_close(run_graph("g (float[1] x) => (float[4] y) <int64 n = {4}> { y = HannWindow(n) }",
                        {counted({1})}),
              {0, 0.5, 1, 0.5});
  check_close(
      run_graph(
          "g (float[1] x) => (float[3] y) <int64 n = {3}> { y = HannWindow<periodic = 0>(n) }",
          {counted({1})}),
      {0, 1, 0});
}

}  // namespace tw::test
