// The default schedules keep their sums in registers, for every instruction set: LLVM counts no
// spills in the inner loops. A few reloads without spills are values that do not change in the
// loop.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "driver/tune/code_check.h"
#include "frontend/frontend.h"
#include "ir/schedule/schedule.h"
#include "passes/precision.h"
#include "tests/cli/cli_test_util.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::conv_attrs, test::must;

namespace {

struct Window {
  int64_t kernel, stride, groups;
};

// A 1x1 convolution into blocked channels, then the convolution under test; with `pool`, a maximum
// over windows of 2x2 follows.
Graph convolution(int64_t in, int64_t out, int64_t width, const Window& w, bool pool = false,
                  DType type = DType::f32) {
  Graph g;
  g.name = "layer";
  const bool bytes = type == DType::u8;
  const DType weights = bytes ? DType::i8 : type;
  ValueId x = g.add_input("x", {type, {Expr(1), Expr(4), Expr(width), Expr(width)}, {}});
  ValueId a = must(
      g.add(conv_attrs(0), {x, g.add_constant("w0", Tensor::zeros(weights, {in, 4, 1, 1}))}));
  if (bytes) a = must(g.add(op::Cast{type}, {a}));
  ValueId b = must(g.add(
      conv_attrs(w.kernel / 2, w.stride, w.groups),
      {a, g.add_constant("w1", Tensor::zeros(weights, {out, in / w.groups, w.kernel, w.kernel}))}));
  const DType sums = bytes ? DType::i32 : type;
  ValueId c = must(
      g.add(op::Binary{BinaryOp::max}, {b, g.add_constant("zero", Tensor::zeros(sums, {}))}));
  if (pool)
    c = must(g.add(op::Pool{.kind = PoolKind::max,
                            .kernel = {2, 2},
                            .strides = {2, 2},
                            .dilations = {1, 1},
                            .pads = {0, 0, 0, 0}},
                   {c}));
  g.add_output(c, "y");
  return g;
}

Graph product(int64_t rows, int64_t depth, int64_t columns, DType type = DType::f32) {
  Graph g;
  g.name = "layer";
  ValueId x = g.add_input("x", {type, {Expr(rows), Expr(depth)}, {}});
  const DType weights = type == DType::u8 ? DType::i8 : type;
  g.add_output(
      must(g.add(op::MatMul{}, {x, g.add_constant("w", Tensor::zeros(weights, {depth, columns}))})),
      "y");
  return g;
}

void check_spills(Target target, const Graph& graph, Algorithm algorithm, int64_t most_reloads = 5,
                  Precision precision = Precision::fp32) {
  set_precision(target, precision);
  TestFolder folder;
  Model model;
  model.graph = graph;
  model.name = "layer";
  CompileOptions options;
  options.output = folder / "layer.so";
  options.algorithms.only = algorithm;
  auto report = compile_graph(std::move(model), options, target);
  if (!report) FAIL(error_text(report.takeError()));
  for (const KernelReport& kernel : report->kernel_reports) {
    CAPTURE(kernel.name);
    CHECK(kernel.spills == 0);
    CHECK(kernel.reloads <= most_reloads);
  }
}

}  // namespace

TEST_CASE("inner loops of default schedules do not spill, whatever the instruction set") {
  for (const std::string name : {"x86-64-v2", "x86-64-v3", "znver4", "cortex-a76", "neoverse-n1"}) {
    CAPTURE(name);
    auto target = load_target(name, {TW_SOURCE_DIR "/configs"});
    if (!target) FAIL(error_text(target.takeError()));
    for (const int64_t width : {28, 7}) {
      CAPTURE(width);
      for (const Window& w : {Window{1, 1, 1}, {3, 1, 1}, {3, 1, 64}}) {
        CAPTURE(w.kernel);
        CAPTURE(w.stride);
        CAPTURE(w.groups);
        check_spills(*target, convolution(64, 64, width, w), Algorithm::direct);
      }
    }
    check_spills(*target, convolution(64, 64, 56, {3, 2, 1}), Algorithm::direct);
    check_spills(*target, convolution(64, 64, 28, {3, 1, 1}), Algorithm::winograd_f4);
    // A pool adds a loop over lines, and so a few reloads.
    check_spills(*target, convolution(64, 64, 28, {3, 1, 1}, true), Algorithm::direct, 8);
    check_spills(*target, convolution(64, 64, 28, {3, 1, 1}, true), Algorithm::winograd_f4);
    check_spills(*target, product(128, 64, 768), Algorithm::direct);
    check_spills(*target, product(1, 64, 512), Algorithm::direct);
  }
}

TEST_CASE("inner loops of short types do not spill on AArch64") {
  for (const std::string name : {"cortex-a55", "cortex-a76", "neoverse-v1", "apple-m1"}) {
    CAPTURE(name);
    auto target = load_target(name, {TW_SOURCE_DIR "/configs"});
    if (!target) FAIL(error_text(target.takeError()));
    const auto check = [&](DType type, Precision precision) {
      CAPTURE(std::string(dtype_name(type)));
      check_spills(*target, product(96, 256, 192, type), Algorithm::direct, 5, precision);
      for (const Window& w : {Window{1, 1, 1}, {3, 1, 1}})
        check_spills(*target, convolution(64, 64, 28, w, false, type), Algorithm::direct, 5,
                     precision);
    };
    check(DType::u8, Precision::fp32);
    if (target->has("fp16fml")) check(DType::f16, Precision::fp32);
    if (target->has("bf16")) check(DType::f32, Precision::bf16);
  }
}

TEST_CASE("a predicted schedule is refused where its code spills or takes more cycles") {
  const Kernel sums = llvm::cantFail(parse_kernel(
      "kernel @m(x: in f32[48, 64], w: const f32[64, 32], y: out f32[48, 32]) {"
      "  for i in 48 { for j in 32 { for k in 64 reduce { c: y[i, j] += x[i, k] * w[k, j] init 0 } "
      "} } }"));
  const Target target = llvm::cantFail(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  // Tiles of so many rows and two vectors; 16 registers hold 4 rows of them, and not 24.
  const auto tiled = [&](const std::string& rows) {
    return llvm::cantFail(
        apply(sums,
              llvm::cantFail(parse_schedule(
                  "schedule {\n  cache_write c -> cr stack\n  split c_i " + rows +
                  " -> i0 i1\n  split c_j 16 -> j0 j1\n  reorder i0 j0 i1 j1\n  compute_at cr j0\n"
                  "  reorder k cr_i cr_j\n  decompose_reduction cr k\n  unroll cr_i\n"
                  "  vectorize cr_j\n  unroll cr_i_init\n  vectorize cr_j_init\n  unroll i1\n"
                  "  vectorize j1\n  set_scope cr register\n}\n")),
              &target));
  };
  const CodeCheck check(target, tiled("4"));
  CHECK(!check.refuses(tiled("4")));
  CHECK(!check.refuses(tiled("6")));
  CHECK(check.refuses(tiled("24")));  // spills
  CHECK(check.refuses(sums));         // one element after the other
  CHECK(!CodeCheck(target, tiled("24")).refuses(tiled("4")));
}
