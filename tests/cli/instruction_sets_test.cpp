// Direct products and convolutions for older instruction sets of this machine, compiled and run,
// against the reference evaluators.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/cli/cli_test_util.h"
#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::conv_attrs, test::must, test::seeded_tensor;

namespace {

Graph product(int64_t rows, int64_t depth, int64_t columns) {
  Graph g;
  g.name = "layer";
  ValueId x = g.add_input("x", {DType::f32, {Expr(rows), Expr(depth)}, {}});
  ValueId a = must(
      g.add(op::MatMul{}, {x, g.add_constant("w", seeded_tensor({depth, columns}, 1))}));
  g.add_output(
      must(g.add(op::Binary{BinaryOp::add}, {a, g.add_constant("b", seeded_tensor({columns}, 2))})),
      "y");
  return g;
}

struct Layer {
  int64_t in, out, height, width, kernel, stride, groups;
};

// A 1x1 convolution into blocked channels, then the convolution under test
Graph convolution(const Layer& l) {
  Graph g;
  g.name = "layer";
  ValueId x = g.add_input("x", {DType::f32, {Expr(1), Expr(3), Expr(l.height), Expr(l.width)}, {}});
  ValueId a = must(
      g.add(conv_attrs(0), {x, g.add_constant("w0", seeded_tensor({l.in, 3, 1, 1}, 1))}));
  g.add_output(
      must(g.add(
          conv_attrs(l.kernel / 2, l.stride, l.groups),
          {a, g.add_constant("w1", seeded_tensor({l.out, l.in / l.groups, l.kernel, l.kernel}, 2)),
           g.add_constant("b1", seeded_tensor({l.out}, 3))})),
      "y");
  return g;
}

AlgorithmOptions direct() {
  AlgorithmOptions options;
  options.only = Algorithm::direct;
  return options;
}

Target set_of(const std::string& name) {
  auto target = load_target(name, {TW_SOURCE_DIR "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return *target;
}

std::string text_of(const Graph& graph, const Target& target, Emit emit) {
  return test::report_of(graph, target, emit, direct()).text;
}

void check(const Graph& graph, const Target& target, std::vector<int64_t> shape) {
  const std::vector<Tensor> inputs = {seeded_tensor(std::move(shape), 5)};
  auto expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  for (int threads : {1, 2}) {
    CAPTURE(threads);
    const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, threads,
                                                       direct());
    double span = 0, worst = 0;
    for (int64_t i = 0; i < got[0].size(); ++i) {
      span = std::max(span, std::fabs((*expected)[0].at(i)));
      worst = std::max(worst, std::fabs(got[0].at(i) - (*expected)[0].at(i)));
    }
    CHECK(worst <= 2e-6 * span);
  }
}

bool runs_here(const Target& target) {
  const Target host = host_target();
  return host.arch() == target.arch() &&
         std::ranges::all_of(target.features, [&](const std::string& f) { return host.has(f); });
}

}  // namespace

TEST_CASE("products and convolutions of older instruction sets equal the reference") {
  for (const char* name : {"x86-64-v2", "x86-64-v3"}) {
    CAPTURE(name);
    const Target target = set_of(name);
    if (!runs_here(target)) {
      MESSAGE("skipped: not a machine of " << name);
      continue;
    }
    for (const auto& [rows, depth, columns] :
         {std::array<int64_t, 3>{128, 64, 96}, {7, 65, 40}, {1, 64, 32}, {5, 2, 3}, {33, 30, 19}}) {
      CAPTURE(rows);
      CAPTURE(depth);
      CAPTURE(columns);
      check(product(rows, depth, columns), target, {rows, depth});
    }
    for (const Layer& l : {Layer{32, 24, 9, 13, 1, 1, 1},
                           {20, 37, 14, 14, 3, 1, 1},
                           {17, 16, 15, 12, 3, 2, 1},
                           {32, 160, 14, 11, 1, 2, 1},
                           {16, 16, 9, 9, 5, 1, 1},
                           {16, 16, 7, 30, 3, 1, 16},
                           {16, 32, 8, 8, 3, 1, 2},
                           {128, 24, 9, 13, 3, 2, 1},
                           {256, 12, 7, 7, 3, 1, 1},
                           {1024, 20, 5, 9, 1, 1, 1},
                           {64, 32, 66, 68, 3, 2, 1},
                           {64, 32, 66, 68, 1, 1, 1}}) {
      CAPTURE(l.in);
      CAPTURE(l.kernel);
      CAPTURE(l.stride);
      CAPTURE(l.groups);
      check(convolution(l), target, {1, 3, l.height, l.width});
    }
  }
}

TEST_CASE("SSE sums even and odd depth steps in lanes of their own, doubled by one load") {
  const Target target = set_of("x86-64-v2");
  CHECK(text_of(product(128, 64, 96), target, Emit::scheduled).find("accp") != std::string::npos);
  CHECK(text_of(product(128, 64, 96), target, Emit::assembly).find("movddup") != std::string::npos);
  // An odd depth has no whole pairs.
  CHECK(text_of(product(128, 63, 96), target, Emit::scheduled).find("accp") == std::string::npos);
  CHECK(text_of(product(128, 64, 96), set_of("x86-64-v3"), Emit::scheduled).find("accp") ==
        std::string::npos);
}

TEST_CASE(
    "with few registers sums pass through memory between chunks of channels whose weights fill the "
    "first-level cache") {
  const auto chunks = [](const Layer& l, const char* target) {
    return text_of(convolution(l), set_of(target), Emit::scheduled).find("accb") !=
           std::string::npos;
  };
  const Layer three{128, 32, 14, 14, 3, 1, 1}, one{1024, 24, 7, 7, 1, 1, 1},
      shallow{32, 24, 14, 14, 3, 1, 1};
  CHECK(chunks(three, "x86-64-v2"));
  CHECK(chunks(three, "x86-64-v3"));
  CHECK(chunks(one, "x86-64-v2"));
  for (const char* target : {"x86-64-v4", "neoverse-n1"}) CHECK_FALSE(chunks(three, target));
  CHECK_FALSE(chunks(one, "x86-64-v3"));
  CHECK_FALSE(chunks(shallow, "x86-64-v2"));
}

TEST_CASE("lines of an input far larger than the second-level cache pass all panels in blocks") {
  const auto blocks = [](const Layer& l) {
    return text_of(convolution(l), set_of("x86-64-v2"), Emit::schedules).find("-> b0 b1") !=
           std::string::npos;
  };
  for (const int64_t kernel : {1, 3}) {
    CAPTURE(kernel);
    CHECK(blocks({64, 32, 66, 68, kernel, kernel == 3 ? 2 : 1, 1}));
    CHECK_FALSE(blocks({64, 32, 32, 32, kernel, kernel == 3 ? 2 : 1, 1}));
  }
}

namespace {

// A lookup in an unordered table of bytes, over a number of elements that no vector length divides.
Graph lookup(DType t, int64_t rows, int64_t columns) {
  Graph g;
  g.name = "layer";
  const ValueId x = g.add_input("x", {t, {Expr(rows), Expr(columns)}, {}});
  Tensor table = Tensor::zeros(t, {256});
  for (int64_t i = 0; i < 256; ++i)
    table.set_int(i, (i * 37 + 11) % 256 - (t == DType::i8 ? 128 : 0));
  g.add_output(must(g.add(op::Lookup{}, {x, g.add_constant("table", table)})), "y");
  return g;
}

}  // namespace

TEST_CASE("bytes are looked up in registers, and all of them right") {
  struct Set {
    const char *name, *instruction;
  };
  for (const auto& [name, instruction] :
       {Set{"x86-64-v1", ""}, Set{"x86-64-v2", "pshufb"}, Set{"x86-64-v3", "vpshufb"},
        Set{"x86-64-v4", "vpshufb"}, Set{"znver4", "2b"}, Set{"neoverse-n1", "tbl"}}) {
    CAPTURE(name);
    const Target target = set_of(name);
    for (const DType t : {DType::i8, DType::u8}) {
      const Graph graph = lookup(t, 3, 111);
      const std::string text = text_of(graph, target, Emit::assembly);
      CHECK(text.find(instruction) != std::string::npos);
      if (!runs_here(target)) continue;
      Tensor x = Tensor::zeros(t, {3, 111});
      for (int64_t i = 0; i < x.size(); ++i) x.set_int(i, i % 256 - (t == DType::i8 ? 128 : 0));
      auto expected = evaluate(graph, {x});
      REQUIRE(bool(expected));
      CHECK(test::run_compiled(graph, {x}, *expected, target, 1)[0].bytes == (*expected)[0].bytes);
    }
  }
}
