// Attention whose mask lets a query see the keys up to its own place. The cases check which masks
// count as such, that panels of keys are skipped, and that the results, as lowered and as
// scheduled, equal the evaluators'.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "frontend/frontend.h"
#include "ir/kernel/interpreter.h"
#include "kernels/arranged.h"
#include "kernels/attention/attention.h"
#include "passes/fuse_groups.h"
#include "program/schedules.h"
#include "tests/ir/graph_testing.h"
#include "tests/passes/random_graph.h"

using namespace tw;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t queries, keys, width;
};
enum class Mask : uint8_t { sees, hides, added, places };

// Builds attention where query i sees key j if sees(i, j).
Graph attention(const Sizes& n, Mask kind, double hidden,
                const std::function<bool(int64_t i, int64_t j)>& sees) {
  Graph g;
  const auto input = [&](const char* name, int64_t rows) {
    return g.add_input(name, {DType::f32, {Expr(1), Expr(2), Expr(rows), Expr(n.width)}, {}});
  };
  const ValueId q = input("q", n.queries), k = input("k", n.keys), v = input("v", n.keys);
  op::MatMul with_keys;
  with_keys.trans_b = true;
  ValueId scores = test::must(g.add(with_keys, {q, k}));
  const ValueId low = g.add_constant("low", test::tensor(DType::f32, {}, {hidden}));
  ValueId m;
  if (kind == Mask::places) {
    op::Iota along;
    along.shape = {Expr(1), Expr(n.keys)}, along.axis = 1;
    const ValueId columns = test::must(g.add(along, {}));
    along.shape = {Expr(n.queries), Expr(1)}, along.axis = 0;
    const ValueId rows = test::must(g.add(along, {}));
    m = test::must(g.add(op::Binary{BinaryOp::le}, {columns, rows}));
  } else {
    Tensor mask = Tensor::zeros(kind == Mask::added ? DType::f32 : DType::boolean,
                                {n.queries, n.keys});
    for (int64_t e = 0; e < mask.size(); ++e) {
      const bool seen = sees(e / n.keys, e % n.keys);
      mask.set(e, kind == Mask::added ? (seen ? 0 : hidden) : (kind == Mask::hides) != seen);
    }
    m = g.add_constant("m", mask);
  }
  if (kind == Mask::added) scores = test::must(g.add(op::Binary{BinaryOp::add}, {scores, m}));
  else if (kind == Mask::hides) scores = test::must(g.add(op::Select{}, {m, low, scores}));
  else scores = test::must(g.add(op::Select{}, {m, scores, low}));
  const ValueId p = test::must(g.add(op::Softmax{3}, {scores}));
  g.add_output(test::must(g.add(op::MatMul{}, {p, v})), "y");
  return g;
}

Tensor run(const Graph& g, const LoweredGroup& lowered, const Kernel& kernel,
           const std::vector<Tensor>& inputs) {
  std::vector<KernelArgument> arguments;
  for (const LoweredArgument& a : lowered.arguments) {
    const auto input = std::ranges::find(g.inputs(), a.value);
    if (a.constant) {
      REQUIRE(!a.pack);
      arguments.push_back({{a.blob.bytes.begin(), a.blob.bytes.end()}});
    } else if (input != g.inputs().end()) {
      arguments.push_back({inputs[static_cast<size_t>(input - g.inputs().begin())].bytes});
    } else {
      arguments.push_back(
          {Tensor::zeros(DType::f32, *static_shape(g.value(a.value).type.shape)).bytes});
    }
  }
  REQUIRE(error_text(interpret(kernel, arguments)) == "");
  Tensor y = Tensor::zeros(DType::f32, *static_shape(g.value(g.outputs()[0].value).type.shape));
  y.bytes = arguments.back().bytes;
  return y;
}

Group attention_group(const Graph& g) {
  const std::vector<Group> groups = fuse_groups(g);
  const auto group = std::ranges::find_if(groups, [&](const Group& one) {
    return std::ranges::any_of(one.nodes, [&](NodeId id) {
      return std::holds_alternative<op::Softmax>(g.node(id).attrs);
    });
  });
  REQUIRE(group != groups.end());
  return *group;
}

// Returns the rows of a tile that skips panels; 0 if no tile does.
int64_t check(const Graph& g, const Target& target) {
  LoweredKernel kernel{test::must(lower_group(g, attention_group(g), target))};
  const ChosenSchedule chosen = test::must(ModelSchedules().choose(kernel, target));
  CHECK(chosen.fault == "");
  const ArrangedKernel made = test::must(arranged(kernel.lowered, target));
  const auto* stages = std::get_if<AttentionStages>(&made.stages);
  REQUIRE(stages);
  const std::vector<Tensor> inputs = test::random_inputs(g, 3);
  const Tensor expected = test::must(evaluate(g, inputs))[0];
  if (fuse_groups(g).size() == 1)
    for (const Kernel* one :
         std::initializer_list<const Kernel*>{&kernel.lowered.kernel, &chosen.run.kernel})
      CHECK(test::relative_difference(expected, run(g, kernel.lowered, *one, inputs)) < 1e-5);
  return stages->block_rows;
}

Target described(const std::string& name) {
  return test::must(load_target(name, {std::string(TW_SOURCE_DIR) + "/configs"}));
}

}  // namespace

TEST_CASE("a query sees the keys up to its place: panels behind them are skipped") {
  for (const std::string name : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64-generic"}) {
    CAPTURE(name);
    const Target target = described(name);
    for (const Sizes n :
         {Sizes{40, 40, 16}, Sizes{37, 37, 12}, Sizes{64, 64, 32}, Sizes{21, 53, 8}})
      for (const Mask kind : {Mask::sees, Mask::hides, Mask::added}) {
        CAPTURE(n.queries);
        CAPTURE(int(kind));
        const int64_t offset = n.keys - n.queries;
        const double hidden = kind == Mask::added ? std::numeric_limits<float>::lowest()
                                                  : -kInfinity;
        CHECK(
            check(attention(n, kind, hidden, [&](int64_t i, int64_t j) { return j <= i + offset; }),
                  target) > 0);
      }
    CHECK(check(attention({40, 40, 16}, Mask::places, -kInfinity, {}), target) > 0);
  }
}

// Smaller blocks keep the scores and exponentials within the limit of a stack.
TEST_CASE("blocks of long rows take their default schedule") {
  for (const std::string name : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64-generic"}) {
    CAPTURE(name);
    const Target target = described(name);
    for (const int64_t tokens : {683, 854, 1024, 2048, 2049}) {
      CAPTURE(tokens);
      const Graph g = attention({tokens, tokens, 32}, Mask::places, -kInfinity, {});
      const LoweredKernel kernel{test::must(lower_group(g, attention_group(g), target))};
      CHECK(test::must(ModelSchedules().choose(kernel, target)).fault == "");
    }
  }
}

TEST_CASE("attention of few heads, keys or columns takes its default schedule") {
  struct Form {
    int64_t heads, queries, keys, size, columns;
  };
  for (const std::string name : {"x86-64-v2", "x86-64-v3", "znver4", "neoverse-v1", "cortex-m4",
                                 "nvidia-sm80", "opencl-generic"}) {
    CAPTURE(name);
    for (const std::string type : {"f32", "f16", "bf16"})
      for (const Form& f :
           {Form{1, 197, 197, 64, 64}, Form{2, 64, 1, 16, 16}, Form{2, 64, 77, 32, 1},
            Form{3, 50, 33, 31, 63}, Form{1, 1, 130, 64, 64}, Form{2, 7, 5, 1, 3}}) {
        CAPTURE(type);
        CAPTURE(f.keys);
        CAPTURE(f.columns);
        const std::string text =
            llvm::formatv(
                "graph @g() {{\n%q: {0}[{1}, {2}, {4}] = input\n"
                "%k: {0}[{1}, {4}, {3}] = input\n%v: {0}[{1}, {3}, {5}] = input\n"
                "%s: {0}[{1}, {2}, {3}] = matmul(%q, %k)\n"
                "%p: {0}[{1}, {2}, {3}] = softmax(%s) axis=2\n"
                "%y: {0}[{1}, {2}, {5}] = matmul(%p, %v)\noutput %y\n}\n",
                type, f.heads, f.queries, f.keys, f.size, f.columns)
                .str();
        const Graph g = test::must(parse_graph(text));
        const Target whole = described(name);
        const Target& target = name.starts_with("nvidia") || name.starts_with("opencl")
                                   ? whole.main_device()
                                   : whole;
        const LoweredKernel kernel{test::must(lower_group(g, attention_group(g), target))};
        CHECK(test::must(ModelSchedules().choose(kernel, target)).fault == "");
      }
  }
}

TEST_CASE("masks that are not causal hide what they say") {
  const Target target = described("x86-64-v3");
  const Sizes n{40, 40, 16};
  const auto rows_of = [&](Mask kind, double hidden, auto sees) {
    return check(attention(n, kind, hidden, sees), target);
  };
  const auto causal = [](int64_t i, int64_t j) { return j <= i; };
  // In turn: a window; one hidden key; one more visible key; all keys but a few; all keys from the
  // query's place on.
  CHECK(rows_of(Mask::sees, -kInfinity, [](int64_t i, int64_t j) { return j <= i && j + 9 > i; }) ==
        0);
  CHECK(rows_of(Mask::sees, -kInfinity,
                [](int64_t i, int64_t j) { return j <= i && (i != 30 || j != 4); }) == 0);
  CHECK(rows_of(Mask::added, -kInfinity,
                [](int64_t i, int64_t j) { return j <= i || (i == 3 && j == 39); }) == 0);
  CHECK(rows_of(Mask::hides, -kInfinity, [](int64_t i, int64_t j) { return j <= i + 38; }) == 0);
  CHECK(rows_of(Mask::sees, -kInfinity, [](int64_t i, int64_t j) { return j >= i; }) == 0);
  // Hidden keys still count a little.
  CHECK(rows_of(Mask::added, -20, causal) == 0);
  CHECK(rows_of(Mask::sees, -1e4, causal) == 0);
}
