// Convolutions with a pool in their kernel, compiled for several instruction sets, against the
// reference evaluators.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/storage_types.h"
#include "tests/cli/cli_test_util.h"
#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::conv_attrs, test::must, test::seeded_tensor;

namespace {

struct Layer {
  int64_t n, in, out, h, w, kernel, stride, pad, groups;
  int64_t high, wide;  // extents of the pool's window
  PoolKind kind;
  // 0: none; 1: ReLU; 2: SiLU and a residual before the pool, tanh and a product behind it
  int followers;
};

// A 1x1 convolution into blocked channels, the convolution with bias and followers, the pool
Graph network(const Layer& l) {
  Graph g;
  g.name = "layer";
  ValueId x = g.add_input("x", {DType::f32, {Expr(l.n), Expr(4), Expr(l.h), Expr(l.w)}, {}});
  auto weights = [&](int64_t out, int64_t in, int64_t kernel, uint64_t seed) {
    return g.add_constant(
        "w", seeded_tensor({out, in, kernel, kernel}, seed,
                           std::sqrt(3.0 / static_cast<double>(in * kernel * kernel))));
  };
  ValueId a = must(g.add(conv_attrs(0), {x, weights(l.in, 4, 1, 1)}));
  // It has the convolution's shape if the padding allows that.
  ValueId other = must(g.add(conv_attrs(0, l.stride), {x, weights(l.out, 4, 1, 4)}));
  ValueId c = must(g.add(conv_attrs(l.pad, l.stride, l.groups),
                         {a, weights(l.out, l.in / l.groups, l.kernel, 2),
                          g.add_constant("b", seeded_tensor({l.out}, 3))}));
  if (l.followers == 1)
    c = must(g.add(op::Binary{BinaryOp::max},
                   {g.add_constant("zero", Tensor::zeros(DType::f32, {})), c}));
  if (l.followers == 2) {
    ValueId silu = must(
        g.add(op::Binary{BinaryOp::mul}, {c, must(g.add(op::Unary{UnaryOp::sigmoid}, {c}))}));
    const bool same = equal(g.value(other).type.shape, g.value(c).type.shape);
    c = same ? must(g.add(op::Binary{BinaryOp::add}, {silu, other})) : silu;
  }
  const op::Pool pool{.kind = l.kind,
                      .kernel = {l.high, l.wide},
                      .strides = {l.high, l.wide},
                      .dilations = {1, 1},
                      .pads = {0, 0, 0, 0}};
  ValueId y = must(g.add(pool, {c}));
  if (l.followers == 2)
    y = must(
        g.add(op::Binary{BinaryOp::mul}, {must(g.add(op::Unary{UnaryOp::tanh}, {y})),
                                          g.add_constant("k", seeded_tensor({l.out, 1, 1}, 6))}));
  g.add_output(y, "y");
  return g;
}

std::string groups_of(const Graph& graph, const Target& target,
                      std::optional<Algorithm> algorithm) {
  AlgorithmOptions options;
  options.only = algorithm;
  return test::report_of(graph, target, Emit::groups, options).text;
}

// True if the pool's group begins with a convolution.
bool is_fused(const std::string& groups) {
  const std::string group = groups.substr(0, groups.find("= pool("));
  return group.find("= conv(", group.rfind("group ")) != std::string::npos;
}

// Returns the largest difference, divided by the outputs' range.
double worst_difference(const Graph& graph, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& expected, const Target& target, int threads,
                        std::optional<Algorithm> algorithm) {
  const std::vector<Tensor> got = test::run_compiled(graph, inputs, expected, target, threads,
                                                     {.only = algorithm});
  double span = 0, worst = 0;
  for (int64_t i = 0; i < got[0].size(); ++i) {
    span = std::max(span, std::fabs(expected[0].at(i)));
    worst = std::max(worst, std::fabs(got[0].at(i) - expected[0].at(i)));
  }
  return worst / span;
}

// Compares with the reference. Returns true if the pool is part of a convolution's kernel.
bool check(const Layer& l, const Target& target, int threads, std::optional<Algorithm> algorithm) {
  CAPTURE(target.cpu);
  CAPTURE(threads);
  const Graph graph = network(l);
  const std::string groups = groups_of(graph, target, algorithm);
  CAPTURE(groups);
  const std::vector<Tensor> inputs = {seeded_tensor({l.n, 4, l.h, l.w}, 5)};
  auto expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  CHECK(worst_difference(graph, inputs, *expected, target, threads, algorithm) <= 2e-5);
  return is_fused(groups);
}

// Bytes pass through a 1x1 convolution into blocked channels, a convolution, and pools of square
// windows.
struct QuantizedLayer {
  int64_t in, out, h, w, kernel, groups;
  std::vector<std::pair<int64_t, PoolKind>> pools;
};

Graph quantized_network(const QuantizedLayer& l, DType type) {
  Graph g;
  g.name = "quantized";
  const auto number = [&](DType dtype, double value) {
    Tensor t = Tensor::zeros(dtype, {});
    t.set(0, value);
    return g.add_constant("c", std::move(t));
  };
  constexpr double kScale = 0.0213;
  const double zero = static_cast<double>(lowest_of(type)) + 120;
  const auto real = [&](ValueId x, double scale, double at) {
    return must(
        g.add(op::Dequantize{}, {x, number(DType::f32, scale), number(g.value(x).type.dtype, at)}));
  };
  const auto bytes = [&](ValueId x, double scale, double at) {
    return must(g.add(op::Quantize{.to = type}, {x, number(DType::f32, scale), number(type, at)}));
  };
  const auto convolution = [&](ValueId x, int64_t in, int64_t out, int64_t kernel, int64_t groups) {
    const Tensor drawn = seeded_tensor({out, in / groups, kernel, kernel}, 7, 127);
    Tensor w = Tensor::zeros(DType::i8, drawn.shape);
    for (int64_t i = 0; i < w.size(); ++i) w.set(i, std::round(drawn.at(i)));
    // With this scale, results fill the range of a byte and are no ties.
    const double scale = 0.0113 / std::sqrt(static_cast<double>(in / groups * kernel * kernel));
    const ValueId weights = real(g.add_constant("w", std::move(w)), scale, 0);
    const ValueId read = real(x, kScale, zero);
    return bytes(must(g.add(conv_attrs(kernel / 2, 1, groups), {read, weights})), kScale, zero);
  };
  ValueId y = g.add_input("x", {type, {Expr(1), Expr(4), Expr(l.h), Expr(l.w)}, {}});
  y = convolution(y, 4, l.in, 1, 1);
  y = convolution(y, l.in, l.out, l.kernel, l.groups);
  for (const auto& [window, kind] : l.pools)
    y = bytes(must(g.add(op::Pool{.kind = kind,
                                  .kernel = {window, window},
                                  .strides = {window, window},
                                  .dilations = {1, 1},
                                  .pads = {0, 0, 0, 0}},
                         {real(y, kScale, zero)})),
              kind == PoolKind::max ? kScale : kScale * 0.53, zero);
  g.add_output(y, "y");
  return g;
}

std::vector<Target> targets() {
  const Target host = host_target();
  std::vector<Target> all;
  for (const char* name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    auto target = load_target(name, {TW_SOURCE_DIR "/configs"});
    if (!target) FAIL(error_text(target.takeError()));
    const bool here = host.arch() == target->arch() &&
                      std::ranges::all_of(target->features,
                                          [&](const std::string& f) { return host.has(f); });
    if (here) all.push_back(*target);
  }
  if (all.empty()) all.push_back(host);
  return all;
}

}  // namespace

TEST_CASE(
    "convolutions and pools in one kernel equal the reference, direct and by Winograd, on every "
    "instruction set") {
  using enum PoolKind;
  const Layer layers[] = {
      {1, 32, 32, 28, 28, 3, 1, 1, 1, 2, 2, max, 1},  // whole tiles
      // Odd extents, channels that fill no block
      {2, 20, 37, 15, 13, 3, 1, 1, 1, 2, 2, max, 2},
      {1, 16, 64, 9, 12, 3, 1, 0, 1, 2, 1, average, 0},  // joins lines only
      {1, 32, 48, 12, 20, 3, 2, 1, 1, 1, 2, max, 1},     // joins pixels of a line only
      {1, 16, 32, 19, 19, 3, 1, 1, 1, 3, 3, average, 2},
  };
  const Algorithm winograd[] = {Algorithm::winograd_f2, Algorithm::winograd_f4,
                                Algorithm::winograd_f6};
  const std::vector<Target> all = targets();
  size_t round = 0;
  for (const Layer& layer : layers)
    for (const Target& target : all) {
      ++round;
      // Every target meets all three tile sizes.
      for (Algorithm a : {Algorithm::direct, winograd[(round / all.size() + round) % 3]}) {
        CAPTURE(algorithm_name(a));
        const int tile = winograd_tile(a), threads = 1 + static_cast<int>(round % 2);
        CHECK(check(layer, target, threads, a) ==
              (tile == 0 || (tile % layer.high == 0 && tile % layer.wide == 0)));
      }
    }
}

TEST_CASE("convolutions with pools of random shapes equal the reference") {
  std::mt19937 random(7);
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  const std::vector<Target> all = targets();
  int fused = 0;
  for (int round = 0; round < 30; ++round) {
    Layer l{between(1, 2),
            between(8, 40),
            between(8, 70),
            between(6, 30),
            between(6, 40),
            2 * between(0, 2) + 1,
            between(1, 2),
            between(0, 2),
            1,
            between(1, 4),
            between(1, 6),
            between(0, 1) ? PoolKind::max : PoolKind::average,
            static_cast<int>(between(0, 2))};
    if (between(0, 3) == 0) l.groups = l.in, l.out = l.in;  // depthwise
    l.h += l.kernel + l.stride * l.high, l.w += l.kernel + l.stride * l.wide;
    CAPTURE(l.n);
    CAPTURE(l.in);
    CAPTURE(l.out);
    CAPTURE(l.h);
    CAPTURE(l.w);
    CAPTURE(l.kernel);
    CAPTURE(l.stride);
    CAPTURE(l.pad);
    CAPTURE(l.groups);
    CAPTURE(l.high);
    CAPTURE(l.wide);
    CAPTURE(l.followers);
    fused += check(l, all[static_cast<size_t>(round) % all.size()], 1 + round / 3 % 2,
                   std::nullopt);
  }
  CHECK(fused >= 15);
}

TEST_CASE("quantized convolutions with pools equal the reference, but for a step of its floats") {
  using enum PoolKind;
  const QuantizedLayer layers[] = {
      {16, 16, 6, 9, 1, 1, {{3, average}}},
      {16, 32, 8, 8, 3, 1, {{2, max}}},
      {16, 16, 12, 12, 3, 16, {{2, average}, {3, average}}},  // depthwise
      {16, 24, 9, 9, 3, 1, {{3, average}, {1, average}}},
      {32, 48, 8, 12, 3, 2, {{2, max}, {2, average}}},
  };
  for (const QuantizedLayer& layer : layers)
    for (const DType type : {DType::i8, DType::u8})
      for (const Target& target : targets()) {
        CAPTURE(target.name);
        CAPTURE(layer.out);
        const Graph graph = quantized_network(layer, type);
        CHECK(is_fused(groups_of(graph, target, std::nullopt)));
        const Tensor drawn = seeded_tensor({1, 4, layer.h, layer.w}, 5, 127);
        Tensor x = Tensor::zeros(type, drawn.shape);
        for (int64_t i = 0; i < x.size(); ++i)
          x.set(i, std::round(drawn.at(i)) + static_cast<double>(lowest_of(type)) + 128);
        const std::vector<Tensor> inputs = {x};
        auto expected = evaluate(graph, inputs);
        REQUIRE(bool(expected));
        const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, 2);
        for (int64_t i = 0; i < got[0].size(); ++i)
          REQUIRE(std::fabs(got[0].at(i) - (*expected)[0].at(i)) <= 1);
      }
}

TEST_CASE("pools behind convolutions along one axis and three equal the reference") {
  for (const size_t rank : {size_t{1}, size_t{3}}) {
    CAPTURE(rank);
    const std::vector<int64_t> sizes = rank == 1 ? std::vector<int64_t>{90}
                                                 : std::vector<int64_t>{7, 6, 12};
    const Ints ones(rank, 1), window(rank, 2);
    Graph g;
    g.name = "layer";
    std::vector<int64_t> shape = {1, 4}, point = {32, 4}, taps = {48, 32};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    point.insert(point.end(), rank, 1);
    taps.insert(taps.end(), rank, 3);
    ValueId x = g.add_input("x", {DType::f32, Shape(shape.begin(), shape.end()), {}});
    ValueId a = must(g.add(op::Conv{.strides = ones, .dilations = ones, .pads = Ints(2 * rank, 0)},
                           {x, g.add_constant("w0", seeded_tensor(point, 1))}));
    ValueId c = must(g.add(op::Conv{.strides = ones, .dilations = ones, .pads = Ints(2 * rank, 1)},
                           {a, g.add_constant("w1", seeded_tensor(taps, 2, 0.1))}));
    g.add_output(must(g.add(op::Pool{.kind = PoolKind::max,
                                     .kernel = window,
                                     .strides = window,
                                     .dilations = ones,
                                     .pads = Ints(2 * rank, 0)},
                            {c})),
                 "y");
    const std::vector<Tensor> inputs = {seeded_tensor(shape, 5)};
    auto expected = evaluate(g, inputs);
    REQUIRE(bool(expected));
    for (const Target& target : targets()) {
      CHECK(is_fused(groups_of(g, target, std::nullopt)));
      CHECK(worst_difference(g, inputs, *expected, target, 2, std::nullopt) <= 2e-5);
    }
  }
}
