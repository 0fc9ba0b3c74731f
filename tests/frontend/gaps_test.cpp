// All gaps of a model are reported at once.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

const Gap* find(const std::vector<Gap>& gaps, const std::string& op, const std::string& problem) {
  const auto found = std::find_if(gaps.begin(), gaps.end(), [&](const Gap& g) {
    return g.op == op && g.problem.find(problem) != std::string::npos;
  });
  return found == gaps.end() ? nullptr : &*found;
}

const char* kManyProblems = R"(<ir_version: 8, opset_import: ["": 20, "com.acme": 1]>
  g (uint8[K] jpeg, float[batch,4] x, float[batch,4,seq] q, float[M] d, int64[1] target, complex64[2] words) => (uint8[N,O,P] y1, float[N] y2, float[N] y3, float[N] y4, float[N] y5, complex64[2] y6, float[N] y7)
  <float[1,1,1] w = {1}> {
    [a] y1 = ImageDecoder(jpeg)
    [b] t = ImageDecoder(jpeg)
    [c] y2 = com.acme.Swirl(t)
    [e] y3 = Reshape(d, target)
    [h] y4 = Resize<mode = "spline">(x, , d)
    [i] y5 = Cast<to = 8>(x)
    [j] y6 = Identity(words)
    [k] y7 = AveragePool<kernel_shape = [2], strides = [2], auto_pad = "SAME_UPPER">(q)
  })";

TEST_CASE("different problems in one report, with counts, nodes and advice") {
  Expected<std::vector<Gap>> gaps = gaps_of(onnx_bytes(kManyProblems));
  if (!gaps) FAIL(error_text(gaps.takeError()));
  const Gap* decoder = find(*gaps, "ImageDecoder", "operator not supported");
  REQUIRE(decoder);
  CHECK(decoder->nodes == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(decoder->advice.empty());
  CHECK(find(*gaps, "com.acme.Swirl", "operator of domain com.acme not supported"));
  CHECK_FALSE(find(*gaps, "Reshape", "shape"));  // the shape is read while the model runs
  CHECK(find(*gaps, "Resize", "attribute mode is 'spline'"));
  CHECK(find(*gaps, "Cast", "dtype string"));
  CHECK(find(*gaps, "input", "dtype complex64"));
  const Gap* symbolic = find(*gaps, "AveragePool", "needs a static extent");
  REQUIRE(symbolic);
  // The advice leaves out dimensions that do not matter here.
  CHECK(symbolic->advice == "bind the free dimension: --dim seq=N");
}

TEST_CASE("the import error carries one diag a gap") {
  Expected<Model> model = import_bytes(onnx_bytes(kManyProblems));
  REQUIRE_FALSE(model);
  const std::vector<Diag> diags = take_diags(model.takeError());
  CHECK(diags.size() >= 6);
  for (const Diag& diag : diags) {
    CHECK_FALSE(diag.where.file.empty());
    CHECK_FALSE(diag.notes.empty());
  }
}

TEST_CASE("what is wrong in both branches is listed with its nodes") {
  Expected<std::vector<Gap>> gaps = gaps_of(graph_bytes(R"(g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] a) { [yes] a = Frobnicate(x) }, else_branch = e () => (float[2] b) { [no] b = Frobnicate(x) }> })"));
  if (!gaps) FAIL(error_text(gaps.takeError()));
  REQUIRE(gaps->size() == 1);
  CHECK((*gaps)[0].op == "Frobnicate");
  CHECK((*gaps)[0].nodes == std::vector<std::string>{"yes", "no"});
}

TEST_CASE("an unknown operator of the standard domain, and one that is newer than its importer") {
  Expected<std::vector<Gap>> unknown = gaps_of(
      graph_bytes("g (float[2] x) => (float[2] y) { t = Frobnicate(x) y = ImageDecoder(t) }", 20));
  if (!unknown) FAIL(error_text(unknown.takeError()));
  CHECK(find(*unknown, "Frobnicate", "no such operator"));
  CHECK(find(*unknown, "ImageDecoder", "not supported"));
}

TEST_CASE("a newer opset than known is fine while its operators did not change") {
  CHECK(run_graph("g (float[2] x) => (float[2] y) { y = Relu(x) }", {floats({2}, {-1, 1})}, 999) ==
        std::vector<double>{0, 1});
}

TEST_CASE("dead nodes do no harm") {
  CHECK(
      error_of(
          graph_bytes(
              "g (uint8[8] j, float[2] x) => (float[2] y) { t = ImageDecoder(j) y = Relu(x) }", 20))
          .empty());
}

TEST_CASE("an output declared of another type is refused, one of other sizes is a warning") {
  Expected<std::vector<Gap>> gaps = gaps_of(
      graph_bytes("g (float[2, n] x) => (float16[2, n] y) { y = Relu(x) }"));
  if (!gaps) FAIL(error_text(gaps.takeError()));
  REQUIRE(gaps->size() == 1);
  CHECK((*gaps)[0].code == DiagCode::invalid_model);
  CHECK((*gaps)[0].problem == "declared as f16, its nodes give f32");
  const auto warnings = [](const std::string& shape) {
    Expected<Model> model = import_bytes(
        graph_bytes("g (float[2, n] x) => (float" + shape + " y) { y = Relu(x) }"));
    if (!model) FAIL(error_text(model.takeError()));
    return model->warnings;
  };
  CHECK(warnings("[2, n]").empty());
  CHECK(warnings("[2, 7]").empty());  // n may be 7
  CHECK(warnings("[a, b]").empty());
  CHECK(warnings("[3, n]") ==
        std::vector<std::string>{"output 'y' is declared as [3, n], its nodes give [2, n]"});
  CHECK(warnings("[2, n, 1]").size() == 1);
}

TEST_CASE("print_gaps is for people") {
  const std::string text = print_gaps(
      {{DiagCode::unsupported, "Loop", "operator not supported", "unroll it", {"l1", "l2"}}});
  CHECK(text == "Loop (2): operator not supported\n  at: l1, l2\n  do: unroll it\n");
}

}  // namespace
}  // namespace tw::test
