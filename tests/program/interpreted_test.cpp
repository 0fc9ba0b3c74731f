// Whole programs of lowered kernels in the interpreter, against the evaluators. This tests
// lowering, algorithms, shared storage and the memory plan, without schedules and generated code.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "kernels/arranged.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/storage.h"
#include "program/plan_program.h"
#include "tests/ir/graph_testing.h"
#include "tests/passes/random_graph.h"
#include "tests/program/machine.h"

using namespace tw;

namespace {

struct Result {
  std::vector<Tensor> outputs;
  int chosen = 0;    // groups that the forced algorithm computes
  int pools = 0;     // groups of a convolution with pools
  int in_place = 0;  // calls with the output in an input's memory
  int transfers = 0;
};

// Draws a device for each group. Groups that write parts of one value get the same.
std::vector<int> random_places(const Graph& graph, const std::vector<Group>& groups,
                               const Target& target) {
  Storage storage(graph, groups);
  std::vector<int> places;
  for (const Group& group : groups) {
    const auto root = static_cast<uint32_t>(
        storage.of(graph.node(group.nodes.back()).output).root.index);
    places.push_back(static_cast<int>((root * 2654435761u >> 8) % (target.devices.size() + 1)));
  }
  return places;
}

// The program with arranged kernels, which are not scheduled further
Program program_of(const std::vector<FusedGraph>& fused, const std::vector<Placement>& placements,
                   const Target& target) {
  LoweredProgram lowered = test::must(lower_program(fused, placements, target));
  std::vector<RunKernel> kernels;
  for (const LoweredKernel& kernel : lowered.kernels)
    kernels.push_back(test::must(arranged(kernel.lowered, target)).run);
  return test::must(plan_program(std::move(lowered), std::move(kernels), target)).program;
}

Result run_interpreted(Graph graph, const std::vector<Tensor>& inputs, const Target& target,
                       std::optional<Algorithm> only = std::nullopt) {
  PassContext context{target};
  REQUIRE(error_text(run_passes(graph, context, default_pipeline())) == "");
  std::vector<Group> groups = fuse_groups(graph);
  AlgorithmOptions algorithms;
  algorithms.only = only;
  choose_algorithms(graph, groups, target, algorithms);
  fuse_pools(graph, groups);
  Result result;
  for (const Group& group : groups) {
    result.chosen += only && group.algorithm == *only;
    result.pools += std::holds_alternative<op::Conv>(graph.node(group.anchor).attrs) &&
                    std::ranges::any_of(group.nodes, [&](NodeId id) {
                      return std::holds_alternative<op::Pool>(graph.node(id).attrs);
                    });
  }
  std::vector<Placement> placements;
  if (!target.devices.empty()) placements = {{random_places(graph, groups, target)}};
  const std::vector<FusedGraph> fused = {{&graph, groups}};
  const Program program = program_of(fused, placements, target);

  std::vector<test::Bytes> given, made;
  for (const Tensor& tensor : inputs) given.push_back(tensor.bytes);
  for (const TensorSpec& spec : program.outputs) {
    result.outputs.push_back(Tensor::zeros(spec.dtype, *static_shape(spec.dims)));
    made.push_back(result.outputs.back().bytes);
  }
  test::Machine machine(program);
  machine.run(given, made);
  result.in_place = machine.in_place, result.transfers = machine.transfers;
  for (size_t i = 0; i < result.outputs.size(); ++i) result.outputs[i].bytes = made[i];
  return result;
}

int check(const Graph& graph, const Target& target, std::optional<Algorithm> only, double tolerance,
          int pools = 0) {
  const std::vector<Tensor> inputs = test::random_inputs(graph, 7);
  Expected<std::vector<Tensor>> expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  const Result got = run_interpreted(graph, inputs, target, only);
  if (only) CHECK(got.chosen >= 1);
  CHECK(got.pools >= pools);
  REQUIRE(got.outputs.size() == expected->size());
  for (size_t i = 0; i < got.outputs.size(); ++i)
    CHECK(test::relative_difference((*expected)[i], got.outputs[i]) < tolerance);
  return got.transfers;
}

Tensor weights(std::mt19937& random, std::vector<int64_t> shape, int64_t depth) {
  Tensor t = test::random_tensor(random, DType::f32, std::move(shape));
  for (float& v : t.as<float>()) v *= std::sqrt(3.0f / static_cast<float>(depth));
  return t;
}

ValueId conv(Graph& g, std::mt19937& random, ValueId x, int64_t in, int64_t out, int64_t kernel,
             int64_t pad) {
  op::Conv attrs;
  attrs.strides = attrs.dilations = {1, 1};
  attrs.pads = {pad, pad, pad, pad};
  ValueId w = g.add_constant("w", weights(random, {out, in, kernel, kernel}, in * kernel * kernel));
  Expected<ValueId> y = g.add(
      attrs, {x, w, g.add_constant("b", test::random_tensor(random, DType::f32, {out}))});
  REQUIRE(bool(y));
  return *y;
}

// A 1x1 convolution into blocked channels, then the convolution under test
Graph layer(int64_t n, int64_t in, int64_t out, int64_t h, int64_t w, int64_t kernel, int64_t pad) {
  std::mt19937 random(static_cast<unsigned>(in + out * 64 + h * 4096 + w));
  Graph g;
  ValueId x = g.add_input("x", {DType::f32, {Expr(n), Expr(in), Expr(h), Expr(w)}, {}});
  ValueId a = conv(g, random, x, in, in, 1, 0);
  g.add_output(conv(g, random, a, in, out, kernel, pad), "y");
  return g;
}

}  // namespace

TEST_CASE("residuals: outputs take the place of what was added") {
  std::mt19937 random(5);
  Graph g;
  ValueId x = conv(g, random,
                   g.add_input("x", {DType::f32, {Expr(1), Expr(4), Expr(6), Expr(5)}, {}}), 4, 16,
                   1, 0);
  for (int block = 0; block < 3; ++block) {
    Expected<ValueId> sum = g.add(
        op::Binary{BinaryOp::add},
        {conv(g, random, conv(g, random, x, 16, 16, 3, 1), 16, 16, 1, 0), x});
    REQUIRE(bool(sum));
    x = *sum;
  }
  g.add_output(conv(g, random, x, 16, 4, 1, 0), "y");
  const Target target = baseline_target(Arch::x86_64);
  const std::vector<Tensor> inputs = test::random_inputs(g, 3);
  Expected<std::vector<Tensor>> expected = evaluate(g, inputs);
  REQUIRE(bool(expected));
  const Result got = run_interpreted(g, inputs, target);
  CHECK(got.in_place == 3);
  CHECK(test::relative_difference((*expected)[0], got.outputs[0]) < 1e-5);
}

TEST_CASE("random graphs, lowered and interpreted, equal their evaluation") {
  const Target target = baseline_target(Arch::x86_64);
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    check(test::random_graph(seed), target, std::nullopt, 1e-4);
  }
}

TEST_CASE("random graphs spread over two devices, each with its memory, equal their evaluation") {
  Target target = baseline_target(Arch::x86_64);
  target.devices.assign(2, target);
  int transfers = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    transfers += check(test::random_graph(seed), target, std::nullopt, 1e-4);
  }
  CHECK(transfers > 60);
}

TEST_CASE("Winograd's kernels, lowered and interpreted, equal the evaluators") {
  const Target target = baseline_target(Arch::x86_64);  // vectors of four
  for (Algorithm a : {Algorithm::winograd_f2, Algorithm::winograd_f4, Algorithm::winograd_f6}) {
    CAPTURE(algorithm_name(a));
    check(layer(1, 16, 8, 5, 7, 3, 1), target, a, 1e-5);
    check(layer(2, 8, 16, 4, 9, 3, 0), target, a, 1e-5);
    check(layer(1, 12, 20, 7, 3, 3, 2), target, a, 1e-5);
  }
}

TEST_CASE("Strassen's kernels, lowered and interpreted, equal the evaluators") {
  const Target target = baseline_target(Arch::x86_64);
  check(layer(1, 16, 16, 5, 3, 1, 0), target, Algorithm::strassen, 1e-5);
  check(layer(1, 8, 24, 4, 7, 1, 0), target, Algorithm::strassen, 1e-5);
}

TEST_CASE("blocks of channels that are not full are read in parts that are") {
  Target target = baseline_target(Arch::x86_64);
  target.vector_bits = 512;
  target.core.f32 = 32;  // two products a cycle: blocks of sixteen
  target.vector_registers = 32;
  for (int64_t channels : {24, 20, 40, 22, 8})
    for (int64_t kernel : {1, 3}) {
      CAPTURE(channels);
      check(layer(1, channels, 32, 4, 5, kernel, kernel / 2), target, Algorithm::direct, 1e-5);
    }
}

TEST_CASE("the last panel of weights may hold blocks of channels that do not exist") {
  Target target = baseline_target(Arch::x86_64);
  target.features = {"avx2", "fma"};
  target.vector_bits = 256;
  target.core.f32 = 16;  // two products a cycle: blocks of eight
  for (int64_t kernel : {1, 3}) {
    CAPTURE(kernel);
    Graph g = layer(1, 16, 104, 28, 28, kernel, kernel / 2);  // 13 blocks, two in a tile
    check(g, target, Algorithm::direct, 1e-5);
    PassContext context{target};
    REQUIRE(error_text(run_passes(g, context, default_pipeline())) == "");
    const std::vector<FusedGraph> fused = {{&g, fuse_groups(g)}};
    const Program program = program_of(fused, {}, target);
    bool filled = false;
    for (const WeightPiece& piece : program.weights)
      filled |= piece.size == uint64_t(14 * 8 * 16 * kernel * kernel * 4);
    CHECK(filled);
  }
}

// Two convolutions of 8-bit integers. The second one reads blocks of channels.
Graph narrow_layers(DType narrow, int64_t zero, int64_t channels, int64_t kernel, int64_t stride) {
  std::mt19937 random(static_cast<unsigned>(channels + kernel));
  Graph g;
  const auto must = [](Expected<ValueId> v) {
    REQUIRE(bool(v));
    return *v;
  };
  const auto constant = [&](std::vector<int64_t> shape) {
    Tensor t = Tensor::zeros(DType::i8, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, static_cast<int64_t>(random() % 255) - 127);
    return g.add_constant("w", t);
  };
  const auto scaled = [&](ValueId v, double by) {
    Tensor factor = Tensor::zeros(DType::f32, {});
    factor.set(0, by);
    return must(g.add(op::Cast{narrow, true},
                      {must(g.add(op::Binary{BinaryOp::mul}, {v, g.add_constant("s", factor)}))}));
  };
  const ValueId x = scaled(g.add_input("x", {DType::f32, {Expr(1), Expr(3), Expr(6), Expr(5)}, {}}),
                           128);
  const ValueId a = must(
      g.add(op::Conv{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1, zero}, {x, constant({channels, 3, 1, 1})}));
  const ValueId b = scaled(must(g.add(op::Cast{DType::f32}, {a})), 0x1p-8);
  const int64_t pad = kernel / 2;
  g.add_output(must(g.add(op::Conv{{stride, stride}, {1, 1}, {pad, pad, pad, pad}, 1, zero},
                          {b, constant({32, channels, kernel, kernel})})),
               "y");
  return g;
}

TEST_CASE(
    "convolutions of 8-bit integers, two and four products at once, lowered and interpreted, equal "
    "the evaluators") {
  Target wide = baseline_target(Arch::x86_64);
  wide.core.f32 = 32;
  wide.features = {"avx512bw", "avx512f", "avx512vnni"};
  wide.vector_bits = 512;
  wide.vector_registers = 32;
  const Target narrow = baseline_target(Arch::x86_64), other = baseline_target(Arch::aarch64);
  for (const Target* target : {&std::as_const(wide), &narrow, &other})
    for (const auto& [type, zero] : {std::pair(DType::i8, -128), std::pair(DType::i8, 5),
                                     std::pair(DType::u8, 0), std::pair(DType::u8, 130)})
      for (const int64_t channels : {16, 24, 20, 6})
        for (const auto& [kernel, stride] : {std::pair(1, 1), std::pair(3, 1), std::pair(3, 2)}) {
          CAPTURE(channels);
          CAPTURE(zero);
          CAPTURE(kernel);
          check(narrow_layers(type, zero, channels, kernel, stride), *target, Algorithm::direct,
                1e-9);
        }
}

TEST_CASE(
    "pools behind convolutions, lowered and interpreted in one kernel, equal the evaluators") {
  const Target target = baseline_target(Arch::x86_64);
  for (Algorithm a : {Algorithm::direct, Algorithm::winograd_f2, Algorithm::winograd_f6})
    for (PoolKind kind : {PoolKind::max, PoolKind::average}) {
      CAPTURE(algorithm_name(a));
      // The pool's windows leave out a row and a column, and the channels do not fill a block.
      Graph g = layer(2, 8, 10, 9, 7, 3, 1);
      const op::Pool pool{.kind = kind,
                          .kernel = {2, 2},
                          .strides = {2, 2},
                          .dilations = {1, 1},
                          .pads = {0, 0, 0, 0}};
      Expected<ValueId> y = g.add(pool, {g.outputs()[0].value});
      REQUIRE(bool(y));
      Expected<ValueId> z = g.add(op::Unary{UnaryOp::tanh}, {*y});
      REQUIRE(bool(z));
      g.set_output(0, *z);
      check(g, target, a, 1e-5, 1);
    }
}
