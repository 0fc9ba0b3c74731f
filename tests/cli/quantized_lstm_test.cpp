// LSTMs with integer recurrent weights, by their default schedules, for the instructions of several
// targets. The code contains the instruction, and the states equal the reference evaluator's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "backends/backend.h"
#include "frontend/frontend.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "passes/fuse_groups.h"
#include "tests/cli/kernel_runner.h"

using namespace tw;

namespace {

struct Weights {
  const char* type;
  int least, most;
};
constexpr Weights kSigned{"i8", -128, 127}, kUnsigned{"u8", 0, 255}, kWords{"i16", -255, 255};

struct Instructions {
  const char *triple, *features;
  Weights weights;
  const char* wanted;
};
constexpr Instructions kSets[] = {
    {"x86_64-linux-gnu", "sse2, ssse3, sse4.1", kSigned, "pmaddwd"},
    {"x86_64-linux-gnu", "avx2, fma", kSigned, "pmaddwd"},
    {"x86_64-linux-gnu", "avx512f, avx512bw, avx512dq, avx512vl, avx512vnni, avx2, fma", kSigned,
     "vpdpbusd"},
    {"x86_64-linux-gnu", "avx512f, avx512bw, avx512dq, avx512vl, avx512vnni, avx2, fma", kUnsigned,
     "vpdpbusd"},
    {"x86_64-linux-gnu", "avx512f, avx512bw, avx512dq, avx512vl, avx512vnni, avx2, fma", kWords,
     "vpdpwssd"},
    {"aarch64-linux-gnu", "neon, dotprod", kSigned, "sdot"},
    {"aarch64-linux-gnu", "neon", kSigned, "mla"},
};

// kWhole has all inputs, several sequences of different lengths and ragged cells, kLeast the fewest
// inputs possible.
constexpr const char* kWhole = R"(%x: f32[4, 3, 148] = input
  %r: T[1, 148, 37] = input
  %b: f32[1, 296] = input
  %n: i32[3] = input
  %h: f32[1, 3, 37] = input
  %c: f32[1, 3, 37] = input
  %p: f32[1, 111] = input
  %s: f32[1, 148] = input
  %y: f32[6, 3, 37] = recurrent(%x, %r, %b, %n, %h, %c, %p, %s) kind=lstm f=sigmoid g=tanh h=tanh reverse=true states=true)";
constexpr const char* kLeast = R"(%x: f32[3, 1, 64] = input
  %r: T[1, 64, 16] = input
  %s: f32[1, 64] = input
  %y: f32[3, 1, 16] = recurrent(%x, %r, _, _, _, _, _, %s) kind=lstm f=sigmoid g=tanh h=tanh)";

std::vector<std::byte> packed(const Kernel& pack, const std::vector<std::byte>& plain,
                              size_t bytes) {
  std::vector<KernelArgument> arguments = {{plain}, {std::vector<std::byte>(bytes)}};
  REQUIRE(error_text(interpret(pack, arguments)) == "");
  return arguments.back().bytes;
}

Tensor random_tensor(const std::string& name, const TensorType& type, const Weights& weights,
                     std::mt19937& random) {
  Ints extents;
  for (const Expr& e : type.shape) extents.push_back(*as_const(e));
  Tensor t = Tensor::zeros(type.dtype, extents);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < t.size(); ++i) {
    const int span = weights.most - weights.least + 1;
    const auto any = static_cast<int>(random() % static_cast<unsigned>(span));
    t.set(i, name == "r"   ? weights.least + any
             : name == "n" ? 2 + static_cast<double>(i)
             : name == "s" ? 0.002 + 0.001 * std::abs(normal(random))
                           : 0.5 * normal(random));
  }
  return t;
}

std::vector<KernelArgument> arguments_of(const LoweredGroup& lowered, const Graph& graph,
                                         const std::vector<ValueId>& inputs,
                                         const std::vector<Tensor>& tensors) {
  std::vector<KernelArgument> all;
  for (size_t i = 0; i < lowered.arguments.size(); ++i) {
    const LoweredArgument& argument = lowered.arguments[i];
    const Buffer& buffer = lowered.kernel.buffers[i];
    REQUIRE(buffer.role != BufferRole::temp);
    int64_t bytes = dtype_bytes(buffer.dtype);
    for (const Expr& extent : buffer.shape) bytes *= *as_const(extent);
    std::vector<std::byte> contents(static_cast<size_t>(bytes));
    if (argument.constant) {
      const auto source = argument.blob.bytes;
      const std::vector<std::byte> plain(source.begin(), source.end());
      contents = argument.pack ? packed(*argument.pack, plain, contents.size()) : plain;
    } else if (const auto at = std::ranges::find(inputs, argument.value); at != inputs.end()) {
      const Tensor& tensor = tensors[static_cast<size_t>(at - inputs.begin())];
      contents.assign(tensor.bytes.begin(), tensor.bytes.end());
    }
    all.push_back({contents});
  }
  REQUIRE(graph.outputs().size() == 1);
  return all;
}

// Sums in another order may round a state in the middle between two bytes the other way, so a few
// elements may be a little off.
void compare(const std::vector<std::byte>& bytes, const Tensor& expected) {
  std::vector<double> errors;
  for (int64_t i = 0; i < expected.size(); ++i) {
    float have = 0;
    std::memcpy(&have, &bytes[static_cast<size_t>(i) * sizeof have], sizeof have);
    errors.push_back(std::abs(have - expected.at(i)));
  }
  std::ranges::sort(errors);
  CHECK(errors.back() < 5e-3);
  CHECK(errors[errors.size() / 2] < 2e-6);
}

void check(const Instructions& set, const char* layer, bool constant) {
  CAPTURE(std::string(set.features));
  CAPTURE(std::string(set.weights.type));
  std::string text = layer;
  text.replace(text.find(" T["), 2, std::string(" ") + set.weights.type);
  Expected<Graph> graph = parse_graph("graph @lstm() {\n  " + text + "\n  output %y\n}\n");
  REQUIRE_MESSAGE(bool(graph), error_text(graph.takeError()));
  std::mt19937 random(7);
  std::vector<Tensor> inputs;
  for (const ValueId input : std::vector<ValueId>(graph->inputs())) {
    const Value value = graph->value(input);
    inputs.push_back(random_tensor(value.name, value.type, set.weights, random));
  }
  Expected<std::vector<Tensor>> expected = evaluate(*graph, inputs);
  REQUIRE_MESSAGE(bool(expected), error_text(expected.takeError()));
  std::vector<Tensor> given;
  const std::vector<ValueId> all = graph->inputs();
  for (size_t i = 0; i < all.size(); ++i)
    if (constant && graph->value(all[i]).name == "r")
      graph->replace_uses(all[i], graph->add_constant("weights", inputs[i]));
    else given.push_back(inputs[i]);
  Expected<Target> target = parse_target(
      std::string("triple: ") + set.triple + "\ncores: 1\nfeatures: [" + set.features + "]\n",
      "lstm.yaml");
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  const std::vector<Group> groups = fuse_groups(*graph);
  REQUIRE(groups.size() == 1);
  Expected<LoweredGroup> defined = lower_group(*graph, groups[0], *target);
  REQUIRE_MESSAGE(bool(defined), error_text(defined.takeError()));
  Expected<LoweredGroup> lowered = arranged_group(*defined, *target);
  REQUIRE_MESSAGE(bool(lowered), error_text(lowered.takeError()));
  Expected<Schedule> schedule = default_schedule(*lowered, *target);
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Expected<Kernel> kernel = apply(lowered->kernel, *schedule, &*target);
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  auto backend = make_backend(*target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<std::string> assembly = (*backend)->disassemble(*kernel, "asm");
  REQUIRE_MESSAGE(bool(assembly), error_text(assembly.takeError()));
  CHECK_MESSAGE(assembly->find(set.wanted) != std::string::npos, *assembly);
  if (!test::runs(*target)) {
    MESSAGE("in the assembly alone: " << set.wanted);
    return;
  }
  std::vector<KernelArgument> arguments = arguments_of(*lowered, *graph, all, inputs);
  test::run_kernel(*kernel, *target, arguments);
  compare(arguments.back().bytes, expected->front());
}

}  // namespace

TEST_CASE("the recurrent half of a quantized LSTM by the target's instruction") {
  for (const Instructions& set : kSets)
    for (const char* layer : {kWhole, kLeast})
      for (const bool constant : {true, false}) check(set, layer, constant);
}
