// Inputs in the caller's form, and inputs bound to values.
#include <doctest/doctest.h>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

std::string picture_model() {
  return graph_bytes(
      "g (float[1,3,2,2] image, int64 n) => (float[1,3,2,2] y) { f = Cast<to = 1>(n) y = "
      "Mul(image, f) }");
}

TEST_CASE("a form gives the interface the caller's type, and a bound input is gone") {
  ImportOptions options;
  Expected<InputForms> forms = parse_input_forms(
      "{image: {layout: nhwc, dtype: u8, channels: bgr, std: [1, 2, 4]}}");
  REQUIRE(forms);
  options.given.forms = std::move(*forms);
  options.given.values["n"] = {"10"};
  Expected<Model> model = import_bytes(picture_model(), options);
  if (!model) FAIL(error_text(model.takeError()));
  REQUIRE(model->graph.inputs().size() == 1);
  CHECK(to_string(model->graph.value(model->graph.inputs()[0]).type) == "u8[1, 2, 2, 3]");
  Tensor picture = Tensor::zeros(DType::u8, {1, 2, 2, 3});
  for (int64_t i = 0; i < 12; ++i) picture.set_int(i, i);
  Expected<std::vector<Tensor>> outputs = evaluate(model->graph, {picture});
  REQUIRE(outputs);
  // The model's channels begin with blue, and the scales are in their order.
  CHECK((*outputs)[0].at(0) == 20);     // blue of the first pixel
  CHECK((*outputs)[0].at(4) == 5);      // green of the first pixel
  CHECK((*outputs)[0].at(11) == 22.5);  // red of the last pixel
}

TEST_CASE("a picture's side has a limit, however far it is stretched") {
  Expected<InputForms> forms = parse_input_forms("{a: {layout: nhwc, dtype: u8, fit: crop}}");
  if (!forms) FAIL(error_text(forms.takeError()));
  const PicturePlace place = place_of(forms->of.at("a"), 1, int64_t{1} << 40, int64_t{1} << 40, 3);
  CHECK(place.width == int64_t{1} << 31);
  CHECK(place.height == int64_t{1} << 40);
}

TEST_CASE("errors about forms come all at once") {
  Expected<InputForms> forms = parse_input_forms("{a: {layout: chw, std: 0}, b: 3}");
  REQUIRE_FALSE(forms);
  CHECK(take_diags(forms.takeError()).size() == 3);
}

}  // namespace
}  // namespace tw::test
