// Algorithms with fewer multiplications, compiled, against the reference evaluators; and the
// choices that the budgets allow.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

#include "frontend/frontend.h"
#include "kernels/lower.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"

using namespace tw;
using test::conv_attrs, test::must, test::seeded_tensor;

namespace {

struct Layer {
  int64_t n, in, out, h, w, pad, stride = 1;
};

// A 1x1 convolution into blocked channels, a 3x3 one with bias, ReLU, and a second 3x3 one whose
// result is added to the first one's input.
Graph network(const Layer& l) {
  Graph g;
  g.name = "layer";
  auto dims = [](std::vector<int64_t> d) { return Shape(d.begin(), d.end()); };
  auto he = [](int64_t depth) { return std::sqrt(3.0 / static_cast<double>(depth)); };
  ValueId x = g.add_input("x", {DType::f32, dims({l.n, 4, l.h, l.w}), {}});
  ValueId first = g.add_constant("w0", seeded_tensor({l.in, 4, 1, 1}, 1, he(4)));
  ValueId a = must(g.add(conv_attrs(0), {x, first}));
  ValueId b = must(
      g.add(conv_attrs(l.pad, l.stride),
            {a, g.add_constant("w1", seeded_tensor({l.out, l.in, 3, 3}, 2, he(9 * l.in))),
             g.add_constant("b1", seeded_tensor({l.out}, 3, 1))}));
  ValueId zero = g.add_constant("zero", Tensor::zeros(DType::f32, {}));
  ValueId c = must(g.add(op::Binary{BinaryOp::max}, {zero, b}));
  ValueId d = must(
      g.add(conv_attrs(1),
            {c, g.add_constant("w2", seeded_tensor({l.out, l.out, 3, 3}, 4, he(9 * l.out)))}));
  ValueId e = must(g.add(op::Binary{BinaryOp::add}, {d, c}));
  g.add_output(e, "y");
  return g;
}

std::string groups_text(const Graph& graph, const Target& target,
                        const AlgorithmOptions& algorithms) {
  return test::report_of(graph, target, Emit::groups, algorithms).text;
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

void check_layer(const Layer& l, const Target& target, Algorithm algorithm) {
  CAPTURE(algorithm_name(algorithm));
  CAPTURE(target.cpu);
  Graph graph = network(l);
  AlgorithmOptions only;
  only.only = algorithm;
  // The first 3x3 convolution may read a plain tensor.
  CHECK(count(groups_text(graph, target, only), algorithm_name(algorithm)) >= 1);
  std::vector<Tensor> inputs = {seeded_tensor({l.n, 4, l.h, l.w}, 5, 1)};
  auto expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  double span = 0;
  for (int64_t i = 0; i < (*expected)[0].size(); ++i)
    span = std::max(span, std::fabs((*expected)[0].at(i)));
  for (int threads : {1, 2}) {
    CAPTURE(threads);
    std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, threads, only);
    double worst = 0;
    for (int64_t i = 0; i < got[0].size(); ++i)
      worst = std::max(worst, std::fabs(got[0].at(i) - (*expected)[0].at(i)));
    CHECK(worst <= 2e-5 * span);
  }
}

const Layer kLayers[] = {
    {1, 32, 48, 14, 14, 1},     // 14 is no multiple of 4 or 6
    {1, 40, 37, 9, 13, 1},      // channels that fill no block of 16
    {2, 16, 16, 5, 7, 0},       // several images, no padding
    {1, 64, 32, 3, 3, 1},       // one tile and less
    {1, 16, 80, 24, 25, 2},     // more padding than the kernel needs, many blocks
    {1, 32, 32, 40, 22, 1},     // blocks of whole rows of tiles
    {1, 16, 32, 21, 46, 1},     // one block of input channels, the last tiles cut off
    {1, 32, 48, 28, 28, 1, 2},  // stride 2
    {2, 40, 37, 15, 22, 1, 2}, {1, 32, 32, 64, 44, 0, 2},
};

}  // namespace

TEST_CASE("Winograd convolutions, compiled for this host, equal the reference") {
  for (const Layer& layer : kLayers)
    for (Algorithm a : {Algorithm::winograd_f2, Algorithm::winograd_f4, Algorithm::winograd_f6})
      check_layer(layer, host_target(), a);
}

TEST_CASE("The padded input of a Winograd convolution is made block by block, each in its thread") {
  Target target = host_target();
  target.cores = 2;
  target.l2_bytes = 1 << 20;
  AlgorithmOptions only;
  only.only = Algorithm::winograd_f2;
  const Layer rows = {1, 32, 32, 40, 22, 1}, few = {1, 64, 32, 8, 8, 1};
  for (const Layer& layer : {rows, few}) {
    CAPTURE(layer.h);
    const std::string text = test::report_of(network(layer), target, Emit::scheduled, only).text;
    const size_t kernel = text.find("temp xp"), line = text.find('\n', kernel);
    REQUIRE(kernel != std::string::npos);
    CHECK(text.substr(kernel, line - kernel).ends_with("thread"));
  }
}

TEST_CASE("Winograd convolutions, compiled for narrower vectors, equal the reference") {
  Target host = host_target(), half = host;
  half.vector_bits = 256;
  half.vector_registers = 16;
  half.cores = 1;
  check_layer(kLayers[0], half, Algorithm::winograd_f4);
  check_layer(kLayers[0], baseline_target(host.arch()), Algorithm::winograd_f4);
  check_layer(kLayers[1], baseline_target(host.arch()), Algorithm::winograd_f6);
}

namespace {

// x [1, rows, depth] times a constant, with a bias; the output is the larger of the sum and the
// product.
Graph product_network(int64_t rows, int64_t depth, int64_t columns, bool transposed) {
  Graph g;
  g.name = "product";
  ValueId x = g.add_input("x", {DType::f32, {Expr(1), Expr(rows), Expr(depth)}, {}});
  double scale = std::sqrt(3.0 / static_cast<double>(depth));
  std::vector<int64_t> shape = transposed ? std::vector<int64_t>{columns, depth}
                                          : std::vector<int64_t>{depth, columns};
  ValueId a = must(g.add(op::MatMul{false, transposed},
                         {x, g.add_constant("w", seeded_tensor(shape, 1, scale))}));
  ValueId b = must(
      g.add(op::Binary{BinaryOp::add}, {a, g.add_constant("b", seeded_tensor({columns}, 2, 1))}));
  ValueId c = must(g.add(op::Binary{BinaryOp::max}, {b, a}));
  g.add_output(c, "y");
  return g;
}

Graph pointwise_network(int64_t h, int64_t w, int64_t in, int64_t out) {
  Graph g;
  g.name = "pointwise";
  ValueId x = g.add_input("x", {DType::f32, {Expr(1), Expr(3), Expr(h), Expr(w)}, {}});
  ValueId a = must(
      g.add(conv_attrs(0), {x, g.add_constant("w0", seeded_tensor({in, 3, 1, 1}, 1, 1))}));
  ValueId b = must(g.add(
      conv_attrs(0), {a,
                      g.add_constant("w1", seeded_tensor({out, in, 1, 1}, 2,
                                                         std::sqrt(3.0 / static_cast<double>(in)))),
                      g.add_constant("b1", seeded_tensor({out}, 3, 1))}));
  ValueId c = must(
      g.add(conv_attrs(0),
            {b, g.add_constant("w2", seeded_tensor({in, out, 1, 1}, 4,
                                                   std::sqrt(3.0 / static_cast<double>(out))))}));
  g.add_output(must(g.add(op::Binary{BinaryOp::add}, {a, c})), "y");
  return g;
}

void check_strassen(const Graph& graph, const Target& target, size_t kernels) {
  CAPTURE(target.vector_bits);
  AlgorithmOptions only;
  only.only = Algorithm::strassen;
  CHECK(count(groups_text(graph, target, only), "strassen") == kernels);
  Shape shape = graph.value(graph.inputs()[0]).type.shape;
  std::vector<int64_t> dims;
  for (const Expr& e : shape) dims.push_back(*as_const(e));
  std::vector<Tensor> inputs = {seeded_tensor(dims, 5, 1)};
  auto expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  double span = 0;
  for (int64_t i = 0; i < (*expected)[0].size(); ++i)
    span = std::max(span, std::fabs((*expected)[0].at(i)));
  for (int threads : {1, 2}) {
    std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, threads, only);
    double worst = 0;
    for (int64_t i = 0; i < got[0].size(); ++i)
      worst = std::max(worst, std::fabs(got[0].at(i) - (*expected)[0].at(i)));
    CHECK(worst <= 5e-6 * span);
  }
}

}  // namespace

TEST_CASE("Strassen's products, compiled, equal the reference") {
  Target host = host_target(), half = host, small = host;
  half.vector_bits = 256;
  half.vector_registers = 16;
  small.l2_bytes = 64 << 10;  // small enough for blocks of rows
  check_strassen(product_network(50, 64, 96, false), host, 1);
  check_strassen(product_network(49, 128, 64, true), host, 1);  // an odd number of rows
  check_strassen(product_network(33, 64, 64, false), half, 1);
  check_strassen(product_network(56, 96, 32, false), small, 1);
  check_strassen(product_network(17, 16, 24, false), baseline_target(host.arch()), 1);
  check_strassen(pointwise_network(7, 7, 64, 96), host, 2);
  check_strassen(pointwise_network(16, 28, 64, 32), small, 2);
  check_strassen(pointwise_network(5, 6, 32, 48), half, 2);
  check_strassen(pointwise_network(7, 7, 48, 40), host, 0);  // no whole pairs of blocks
}

namespace {

double worst_error(const Graph& graph, const std::vector<Tensor>& inputs, const Target& target,
                   int threads, const AlgorithmOptions& algorithms) {
  auto expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, threads,
                                                     algorithms);
  double span = 0, worst = 0;
  for (int64_t i = 0; i < got[0].size(); ++i) {
    span = std::max(span, std::fabs((*expected)[0].at(i)));
    worst = std::max(worst, std::fabs(got[0].at(i) - (*expected)[0].at(i)));
  }
  return worst / span;
}

}  // namespace

TEST_CASE(
    "Winograd and Strassen on random shapes, forced or chosen by growth, equal the reference") {
  std::mt19937 random(20);
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  const Algorithm winograd[] = {Algorithm::winograd_f2, Algorithm::winograd_f4,
                                Algorithm::winograd_f6};
  const double growths[] = {1, 1.5, 4};
  for (int round = 0; round < 9; ++round) {
    const Layer l{between(1, 3),  between(16, 50), between(16, 70), between(3, 21),
                  between(3, 21), between(0, 2),   between(1, 2)};
    const int64_t rows = between(9, 70), depth = 32 * between(1, 4), columns = 32 * between(1, 3);
    const int threads = 1 + round % 2;
    CAPTURE(l.n);
    CAPTURE(l.in);
    CAPTURE(l.out);
    CAPTURE(l.h);
    CAPTURE(l.w);
    CAPTURE(l.pad);
    CAPTURE(l.stride);
    AlgorithmOptions forced, strassen, chosen;
    forced.only = winograd[round % 3];
    strassen.only = Algorithm::strassen;
    chosen.max_weight_growth = growths[round % 3];
    const std::vector<Tensor> image = {seeded_tensor({l.n, 4, l.h, l.w}, 5, 1)};
    CHECK(worst_error(network(l), image, host_target(), threads, forced) <= 2e-5);
    CHECK(worst_error(network(l), image, host_target(), threads, chosen) <= 2e-5);
    CAPTURE(rows);
    CAPTURE(depth);
    CAPTURE(columns);
    const Graph product = product_network(rows, depth, columns, round % 2 == 0);
    CHECK(count(groups_text(product, host_target(), strassen), "strassen") == 1);
    CHECK(worst_error(product, {seeded_tensor({1, rows, depth}, 5, 1)}, host_target(), threads,
                      strassen) <= 5e-6);
  }
}

TEST_CASE("the growth of weights bounds the choice") {
  Target target = host_target();
  Graph graph = network({1, 64, 64, 28, 28, 1});
  auto taken = [&](double growth) {
    AlgorithmOptions o;
    o.max_weight_growth = growth;
    return count(groups_text(graph, target, o), "winograd");
  };
  CHECK(taken(1) == 0);
  CHECK(taken(10) == 2);
  std::vector<size_t> steps;
  for (double growth : {1.0, 1.5, 2.0, 3.0, 5.0}) steps.push_back(taken(growth));
  CHECK(std::is_sorted(steps.begin(), steps.end()));
}

TEST_CASE("no other choice within the growth of weights takes fewer cycles") {
  const Target target = host_target();
  Graph g;
  g.name = "products";
  const std::vector<std::array<int64_t, 3>> shapes = {
      {256, 256, 256}, {512, 512, 256}, {128, 1024, 512}, {1024, 256, 512}, {196, 768, 768}};
  for (const auto& [rows, depth, columns] : shapes) {
    ValueId x = g.add_input("x" + std::to_string(rows),
                            {DType::f32, {Expr(rows), Expr(depth)}, {}});
    ValueId w = g.add_constant("w" + std::to_string(rows), seeded_tensor({depth, columns}, 1, 1));
    g.add_output(must(g.add(op::MatMul{}, {x, w})), "y" + std::to_string(rows));
  }
  double model_bytes = 0;
  std::vector<std::array<AlgorithmEstimate, 2>> estimates;  // direct, Strassen
  std::vector<Group> groups = fuse_groups(g);
  for (const auto& [rows, depth, columns] : shapes)
    model_bytes += static_cast<double>(depth * columns * 4);
  for (const Group& group : groups) {
    auto of = [&](Algorithm a) {
      auto e = estimate_algorithm(g, group, a, target, model_bytes);
      REQUIRE(e.has_value());
      return *e;
    };
    const AlgorithmEstimate direct = of(Algorithm::direct), strassen = of(Algorithm::strassen);
    // A gain below 3 % is no gain.
    estimates.push_back({direct, strassen.cycles < 0.97 * direct.cycles ? strassen : direct});
  }
  REQUIRE(estimates.size() == shapes.size());
  for (double growth : {1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75}) {
    CAPTURE(growth);
    AlgorithmOptions options;
    options.max_weight_growth = growth;
    choose_algorithms(g, groups, target, options);
    double chosen = 0, chosen_bytes = 0, best = 1e30;
    for (size_t i = 0; i < groups.size(); ++i) {
      const AlgorithmEstimate& e = estimates[i][groups[i].algorithm == Algorithm::strassen];
      chosen += e.cycles;
      chosen_bytes += e.weight_bytes;
    }
    CHECK(chosen_bytes <= growth * model_bytes);
    for (size_t all = 0; all < size_t{1} << estimates.size(); ++all) {
      double cycles = 0, bytes = 0;
      for (size_t i = 0; i < estimates.size(); ++i) {
        cycles += estimates[i][all >> i & 1].cycles;
        bytes += estimates[i][all >> i & 1].weight_bytes;
      }
      // choose_algorithms counts in 4096ths of the spare bytes.
      if (bytes <= (growth - 1e-3) * model_bytes) best = std::min(best, cycles);
    }
    CHECK(chosen <= best * (1 + 1e-12));
  }
}

TEST_CASE("the error budget bounds the choice") {
  Target target = host_target();
  Graph graph = network({1, 64, 64, 28, 28, 1});
  AlgorithmOptions o;
  o.max_weight_growth = 10;
  auto words = [&](double accuracy) {
    target.accuracy = accuracy;
    return groups_text(graph, target, o);
  };
  CHECK(count(words(1e-9), "winograd") == 0);
  CHECK(count(words(1e-6), "winograd_f6") == 0);
  CHECK(count(words(1e-3), "winograd") == 2);
}

TEST_CASE("in bf16 the algorithms may make the error of direct sums twice as large") {
  Expected<Target> parsed = parse_target(
      "triple: x86_64-linux-gnu\ncores: 1\nprecision: bf16\n"
      "features: [avx512bf16, avx512vl, avx512bw, avx512dq, fma]\n",
      "bf16.yaml");
  REQUIRE_MESSAGE(bool(parsed), error_text(parsed.takeError()));
  Target target = *parsed;
  Graph graph = network({1, 64, 64, 28, 28, 1});
  AlgorithmOptions o;
  o.max_weight_growth = 10;
  const auto words = [&](double accuracy) {
    target.accuracy = accuracy;
    return groups_text(graph, target, o);
  };
  CHECK(count(words(1e-6), "winograd") == 0);
  CHECK(count(words(1e-4), "winograd_f2") == 2);
  CHECK(count(words(1e-2), "winograd_f2") < 2);  // larger tiles
  CHECK(count(words(1e-2), "winograd") == 2);
}

TEST_CASE("layers that are settled or exact are not chosen for") {
  const Target target = host_target();
  Graph graph = network({1, 64, 64, 28, 28, 1});
  AlgorithmOptions o;
  o.only = Algorithm::winograd_f2;
  const std::string all = groups_text(graph, target, o);
  REQUIRE(count(all, "winograd_f2") == 2);
  PassContext context{target};
  REQUIRE(error_text(run_passes(graph, context, default_pipeline())) == "");
  std::vector<Group> groups = fuse_groups(graph);
  choose_algorithms(graph, groups, target, o);
  std::vector<std::string> names;
  for (const Group& group : groups)
    if (group.algorithm == Algorithm::winograd_f2)
      names.push_back(graph.value(graph.node(group.anchor).output).name);
  REQUIRE(names.size() == 2);
  o.exact = {names[0]};
  o.settled = {{names[0], Algorithm::winograd_f2}, {names[1], Algorithm::winograd_f4}};
  choose_algorithms(graph, groups, target, o);
  for (const Group& group : groups) {
    const std::string& name = graph.value(graph.node(group.anchor).output).name;
    if (name == names[0]) CHECK(group.algorithm == Algorithm::direct);
    if (name == names[1]) CHECK(group.algorithm == Algorithm::winograd_f4);
  }
}

TEST_CASE("measured times decide, and what is not measured is brought to their measure") {
  Target target = host_target();
  target.accuracy = 1e-3;
  Graph graph = network({1, 64, 64, 28, 28, 1});
  PassContext context{target};
  // Winograd's algorithm needs channels in blocks, which the passes make.
  REQUIRE(error_text(run_passes(graph, context, default_pipeline())) == "");
  std::vector<Group> groups = fuse_groups(graph);
  AlgorithmOptions o;
  o.max_weight_growth = 10;
  std::vector<NodeId> both;  // the layers that Winograd's algorithm applies to
  for (const Group& group : groups)
    if (std::ranges::count(applicable_algorithms(graph, group, target), Algorithm::winograd_f4) > 0)
      both.push_back(group.anchor);
  REQUIRE(both.size() == 2);
  const auto chosen = [&](const AlgorithmOptions& options) {
    choose_algorithms(graph, groups, target, options);
    std::vector<Algorithm> list;
    for (const Group& group : groups)
      if (std::ranges::find(both, group.anchor) != both.end()) list.push_back(group.algorithm);
    return list;
  };
  const auto times = [](double direct, double f2, double others) {
    return std::map<Algorithm, double>{{Algorithm::direct, direct},
                                       {Algorithm::winograd_f2, f2},
                                       {Algorithm::winograd_f4, others},
                                       {Algorithm::winograd_f6, others}};
  };
  AlgorithmOptions measured = o;
  measured.measured = {{both[0], times(1e-6, 2e-6, 3e-6)}, {both[1], times(2e-6, 1e-6, 3e-6)}};
  CHECK(chosen(measured) == std::vector{Algorithm::direct, Algorithm::winograd_f2});
  // This difference is within the noise of two measurements.
  measured.measured[both[0]] = times(1e-6, 0.99e-6, 3e-6);
  CHECK(chosen(measured)[0] == Algorithm::direct);
  // Winograd took a hundred times the estimate where it was measured, so its other estimates grow
  // by the same factor.
  AlgorithmOptions slow = o;
  slow.measured = {{both[0], times(1e-6, 1e-4, 1e-4)}};
  CHECK(chosen(slow) == std::vector{Algorithm::direct, Algorithm::direct});
  AlgorithmOptions fixed = measured;
  fixed.fixed = {{both[0], Algorithm::winograd_f2}, {both[1], Algorithm::direct}};
  CHECK(chosen(fixed) == std::vector{Algorithm::winograd_f2, Algorithm::direct});
}

TEST_CASE("errors grow with tiles and length") {
  CHECK(winograd_kappa(2) > 1);
  CHECK(winograd_kappa(4) > 3 * winograd_kappa(2));
  CHECK(winograd_kappa(6) > winograd_kappa(4));
  CHECK(winograd_kappa(4, 2) < winograd_kappa(4));  // one tap less, for half of the products only
  CHECK(rounding_error(1, 512) > rounding_error(1, 64));
  CHECK(rounding_error(1, 768) == doctest::Approx(1e-6).epsilon(0.2));  // calibrate_error.py
}
