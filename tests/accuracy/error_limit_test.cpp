#include "driver/accuracy/error_limit.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace tw;

namespace {

Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  Tensor t = Tensor::zeros(DType::f32, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}

double error_of(ErrorMeasure measure, const std::vector<Tensor>& got,
                const std::vector<Tensor>& want) {
  OutputErrors errors(measure);
  errors.add(got, want);
  return errors.value();
}

}  // namespace

TEST_CASE("limits of accuracy: a number, with a measure in front or the command's own") {
  const auto read = [](const char* text) {
    Expected<ErrorLimit> limit = error_limit_from_text(text, ErrorMeasure::rms);
    REQUIRE(bool(limit));
    return *limit;
  };
  CHECK(read("1e-3").measure == ErrorMeasure::rms);
  CHECK(read("1e-3").most == 1e-3);
  CHECK(read("max:0.5").measure == ErrorMeasure::largest);
  CHECK(read("rms:0").most == 0);
  CHECK(read("top1:99%").measure == ErrorMeasure::top1);
  CHECK(read("top1:99%").most == doctest::Approx(0.01));
  for (const char* wrong : {"", "x", "-1", "max:", "top1:99", "top1:101%", "top2:1", "1e999"}) {
    CAPTURE(wrong);
    Expected<ErrorLimit> limit = error_limit_from_text(wrong, ErrorMeasure::rms);
    REQUIRE(!limit);
    CHECK(error_text(limit.takeError()).find("top1:99%") != std::string::npos);
  }
}

TEST_CASE(
    "measures of accuracy: largest is verify's, rms is by the outputs' own, of several the "
    "worst counts") {
  const std::vector<Tensor> want = {floats({4}, {0, 4, -4, 2}), floats({2}, {3, 4})};
  const std::vector<Tensor> got = {floats({4}, {0, 4, -4, 2.8F}), floats({2}, {3, 4.5F})};
  CHECK(error_of(ErrorMeasure::largest, got, want) == doctest::Approx(0.125));  // 0.5 of 4
  CHECK(error_of(ErrorMeasure::rms, got, want) == doctest::Approx(0.8 / 6));
  CHECK(error_of(ErrorMeasure::largest, want, want) == 0);
  CHECK(error_of(ErrorMeasure::rms, want, want) == 0);
}

TEST_CASE("measures of accuracy: what cannot be compared is off without bounds") {
  const std::vector<Tensor> numbers = {floats({2}, {1, 2})}, none = {floats({2}, {NAN, NAN})};
  CHECK(std::isinf(error_of(ErrorMeasure::largest, none, numbers)));
  CHECK(std::isinf(error_of(ErrorMeasure::largest, none, none)));
  CHECK(std::isinf(error_of(ErrorMeasure::rms, none, numbers)));
  Tensor index = Tensor::zeros(DType::i64, {1}), other = index;
  other.set(0, 1);
  CHECK(error_of(ErrorMeasure::largest, {index}, {index}) == 0);
  CHECK(std::isinf(error_of(ErrorMeasure::largest, {other}, {index})));
}

TEST_CASE("measures of accuracy: top1 counts rows whose largest element is another one") {
  const Tensor want = floats({4, 2}, {1, 2, 2, 1, 5, 6, 7, 8});
  const Tensor got = floats({4, 2}, {1, 3, 1, 2, 0, 6, 0, 1});
  CHECK(error_of(ErrorMeasure::top1, {got}, {want}) == doctest::Approx(0.25));
  CHECK(measure_text(0.25, ErrorMeasure::top1) == "75% agree");
}
