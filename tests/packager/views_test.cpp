// Runs on views keep the memory between the elements as it is. Views that do not fit are refused
// with a message.
#include <doctest/doctest.h>

#include <memory>

#include "packager/loaded_model.h"
#include "tests/packager/fake_artifact.h"

namespace {

constexpr int64_t kElement = sizeof(float);
constexpr float kGap = -77;  // value between elements

struct ViewedLibrary {  // one artifact for all cases of this file
  ScratchDir dir;
  std::unique_ptr<tw::LoadedModel> model;
  ViewedLibrary() {
    write_fake(dir / "fake.so", "fake.x86_64");
    auto loaded = tw::LoadedModel::open(dir / "fake.so");
    if (!loaded) FAIL(tw::error_text(loaded.takeError()));
    model = std::make_unique<tw::LoadedModel>(std::move(*loaded));
  }
};
const tw_api& viewed() {
  static ViewedLibrary library;
  return library.model->api();
}

// y[n, 4] = a[n, 4] + b[n, 4] + 100 (column + 1) + every second element of c[2n], on views: a is
// transposed, b is one row for all, c takes every third float, y has gaps behind its rows.
struct Views {
  explicit Views(int64_t n) : rows{n, 4}, twice{2 * n}, a(n * 4), b(4), c(6 * n), y(n * 7, kGap) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
    for (size_t i = 0; i < b.size(); ++i) b[i] = 1000.0f * static_cast<float>(i);
    for (size_t i = 0; i < c.size(); ++i) c[i] = 0.5f * static_cast<float>(i);
    of_a[0] = kElement, of_a[1] = n * kElement, of_y[0] = 7 * kElement;
    inputs[0] = {a.data(), a.size() * 4, TW_F32, 2, rows};
    inputs[1] = {b.data(), b.size() * 4, TW_F32, 2, rows};
    inputs[2] = {c.data(), c.size() * 4, TW_F32, 1, twice};
    outputs[0] = {y.data(), y.size() * 4, TW_F32, 2, nullptr};
    outputs[1] = {&count, 8, TW_I64, 0, nullptr};
  }
  tw_status run(tw_context* context) {
    return viewed().run_views(context, inputs, outputs, strides);
  }
  bool right() const {
    const int64_t n = rows[0];
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < 7; ++k) {
        const float want = k < 4 ? a[k * n + i] + b[k] + 100.0f * float(k + 1) + c[6 * i] : kGap;
        if (y[7 * i + k] != want) return false;
      }
    return count == n;
  }
  int64_t rows[2], twice[1];
  int64_t of_a[2], of_b[2] = {0, kElement}, of_c[1] = {3 * kElement}, of_y[2] = {0, kElement};
  const int64_t* strides[5] = {of_a, of_b, of_c, of_y, nullptr};
  std::vector<float> a, b, c, y;
  int64_t count = -1;
  tw_tensor inputs[3], outputs[2];
};

struct ViewContext {
  ViewContext() { REQUIRE(viewed().create(nullptr, &c) == TW_OK); }
  ~ViewContext() { viewed().destroy(c); }
  std::string refused(Views& views, tw_status status) const {
    CHECK(views.run(c) == status);
    return viewed().last_error(c);
  }
  tw_context* c = nullptr;
};

}  // namespace

TEST_CASE("views are read and written where they lie, whatever is between their elements") {
  const ViewContext context;
  for (const int64_t n : {1, 3, 200, 5}) {
    CAPTURE(n);
    Views views(n);
    const std::vector<float> a = views.a, c = views.c;
    REQUIRE_MESSAGE(views.run(context.c) == TW_OK, viewed().last_error(context.c));
    CHECK(views.right());
    CHECK(views.a == a);
    CHECK(views.c == c);
  }
}

TEST_CASE("a view that is dense is not copied") {
  const ViewContext context;
  Views views(3);
  const int64_t dense[2] = {4 * kElement, kElement};
  std::vector<float> y(12, kGap);
  views.strides[3] = dense;
  views.outputs[0].data = y.data();
  views.outputs[0].bytes = y.size() * 4;
  REQUIRE(views.run(context.c) == TW_OK);
  int64_t dims[2];
  void* data = nullptr;
  REQUIRE(viewed().output_of_run(context.c, 0, dims, &data) == TW_OK);
  CHECK(data == y.data());
  CHECK(y[5] == views.a[3 + 1] + views.b[1] + 200.0f + views.c[6]);
}

TEST_CASE("views that do not fit are refused in words") {
  const ViewContext context;
  {
    Views v(3);
    v.of_a[0] = -4;
    CHECK(context.refused(v, TW_E_ARGUMENT) ==
          "input 0 (a): a stride in bytes is -4, expected 4 or a larger multiple of it");
  }
  {
    Views v(3);
    v.of_c[0] = 6;
    CHECK(context.refused(v, TW_E_ARGUMENT) ==
          "input 2 (c): a stride in bytes is 6, expected 4 or a larger multiple of it");
  }
  {
    Views v(3);
    v.of_y[0] = 0;
    CHECK(context.refused(v, TW_E_ARGUMENT) ==
          "output 0 (y): a stride of the output in bytes is 0, expected 4 or a larger multiple of "
          "it");
  }
  {
    Views v(3);
    v.inputs[2].bytes = 15 * 4;  // the last element is the sixteenth
    CHECK(context.refused(v, TW_E_SIZE) == "input 2 (c): buffer size in bytes is 60, expected 64");
  }
  {
    Views v(3);
    v.outputs[0].bytes = 4 * (2 * 7 + 4) - 1;
    CHECK(context.refused(v, TW_E_SIZE) == "output 0 (y): buffer size in bytes is 71, expected 72");
    CHECK(v.y == std::vector<float>(21, kGap));
  }
  {
    Views v(3);
    v.of_a[0] = INT64_MAX / 4 * 4;
    CHECK(context.refused(v, TW_E_SHAPE) ==
          "input 0 (a): the view has more bytes than can be counted");
  }
  {
    Views v(3);
    v.inputs[0].rank = 1;
    CHECK(context.refused(v, TW_E_SHAPE) == "input 0 (a): rank is 1, expected 2");
  }
  {
    Views v(3);
    v.inputs[0].data = nullptr;
    CHECK(context.refused(v, TW_E_ARGUMENT) == "input 0 (a): data is null");
  }
  {
    Views v(3);
    const int64_t rows[2] = {4, 4};
    v.outputs[0].dims = rows;
    CHECK(context.refused(v, TW_E_SHAPE) == "output 0 (y): dim 0 is 4, expected 3");
  }
  CHECK(viewed().run_views(nullptr, nullptr, nullptr, nullptr) == TW_E_ARGUMENT);
  Views good(2);
  CHECK(good.run(context.c) == TW_OK);
  CHECK(good.right());
}
