// Whole models on the VDLA: placed, compiled and run on the simulator, and the driver's messages
// when something is missing.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "frontend/frontend.h"
#include "packager/loaded_model.h"
#include "tests/cli/compiled.h"
#include "tests/passes/random_graph.h"

namespace tw {
namespace {

// Sets the device's address for models loaded while it lives.
struct Address {
  explicit Address(const std::string& text) { setenv("TILEWRIGHT_DEVICE", text.c_str(), 1); }
  ~Address() { unsetenv("TILEWRIGHT_DEVICE"); }
};

Target vdla_target() {
  Expected<Target> target = load_target("vdla-16x16", {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return *target;
}

// Copies the graph, with random constants in place of all inputs but x.
Graph with_constants(const Graph& from) {
  std::mt19937 random(7);
  Graph graph;
  std::map<ValueId, ValueId> made;
  for (const ValueId input : from.inputs()) {
    const TensorType type = from.value(input).type;
    const std::string& name = from.value(input).name;
    if (name == "x") {
      made[input] = graph.add_input(name, type);
      continue;
    }
    Tensor values = Tensor::zeros(type.dtype, *static_shape(type.shape));
    for (int64_t i = 0; i < values.size(); ++i) {
      if (type.dtype == DType::i8)
        values.set(i, std::uniform_int_distribution<int>(-127, 127)(random));
      if (type.dtype == DType::i32)
        values.set(i, std::uniform_int_distribution<int>(-9000, 9000)(random));
      if (type.dtype == DType::f32)
        values.set(i, std::uniform_int_distribution<int>(100, 900)(random) * 0x1p-20);
    }
    made[input] = graph.add_constant(name, values);
  }
  for (const NodeId id : from.order()) {
    const Node& node = from.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      if (from.is_constant(input) && !made.contains(input))
        made[input] = graph.add_constant(from.value(input).name, from.constant_tensor(input));
      inputs.push_back(made.at(input));
    }
    Expected<ValueId> value = graph.add(node.attrs, inputs, from.value(node.output).name);
    if (!value) FAIL(error_text(value.takeError()));
    made[node.output] = *value;
  }
  for (const Graph::Output& output : from.outputs())
    graph.add_output(made.at(output.value), output.name);
  return graph;
}

// Four requantized convolutions, with the nodes of `middle` applied to %q1 between them. The first
// one reads a plain input and the last one writes a plain output, so the processor runs these two.
Graph layers(const std::string& middle, const std::string& last,
             const std::string& channels = "16") {
  std::string text = "graph @g() {\n%x: i8[1, " + channels +
                     ", 10, 8] = input\n%z: f32[] = const [3.0]\n";
  std::string from = "%x";
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i), type = "[1, 32, 10, 8]", in = i ? "32" : channels;
    text += "%w" + n + ": i8[32, " + in + ", 3, 3] = input\n%b" + n + ": i32[32] = input\n%k" + n +
            ": f32[32, 1, 1] = input\n%s" + n + ": i32" + type + " = conv(" + from + ", %w" + n +
            ", %b" + n + ") strides=[1,1] dilations=[1,1] pads=[1,1,1,1] x_zero=3\n%f" + n +
            ": f32" + type + " = cast(%s" + n + ") to=f32\n%g" + n + ": f32" + type +
            " = binary(%f" + n + ", %k" + n + ") function=mul\n%r" + n + ": f32" + type +
            " = unary(%g" + n + ") function=round\n%a" + n + ": f32" + type + " = binary(%r" + n +
            ", %z) function=add\n%q" + n + ": i8" + type + " = cast(%a" + n +
            ") to=i8 saturate=true\n";
    from = "%q" + n;
    if (i == 1 && !middle.empty()) text += middle, from = last;
  }
  Expected<Graph> graph = parse_graph(text + "output %q3\n}\n");
  if (!graph) FAIL(error_text(graph.takeError()));
  return with_constants(*graph);
}

void check(const Graph& graph, const Target& target) {
  const std::vector<Tensor> inputs = test::random_inputs(graph, 5);
  Expected<std::vector<Tensor>> expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, 1);
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i].bytes == (*expected)[i].bytes);
}

std::vector<std::string> stays(const Graph& graph) {
  Model model;
  model.graph = graph;
  model.name = "placed";
  CompileOptions options;
  options.emit = Emit::scheduled;
  Expected<CompileReport> report = compile_graph(std::move(model), options, vdla_target());
  if (!report) FAIL(error_text(report.takeError()));
  return report->host_reasons;
}

int64_t convolutions(const std::vector<std::string>& reasons) {
  return std::ranges::count_if(
      reasons, [](const std::string& r) { return r.find("(conv)") != std::string::npos; });
}

// Returns the error of creating a context of the layers at this address; "" on success.
std::string said(const std::string& address) {
  static const std::string library = [] {
    Model model;
    model.graph = layers("", "");
    model.name = "said";
    CompileOptions options;
    options.output = "/tmp/tilewright-vdla-" + std::to_string(getpid()) + ".so";
    options.name = "said";
    Expected<CompileReport> report = compile_graph(std::move(model), options, vdla_target());
    if (!report) FAIL(error_text(report.takeError()));
    return options.output;
  }();
  const Address here(address);
  Expected<LoadedModel> model = LoadedModel::open(library);
  if (!model) FAIL(error_text(model.takeError()));
  tw_context* context = nullptr;
  const tw_status status = model->api().create(nullptr, &context);
  if (status == TW_OK) return model->api().destroy(context), "";
  CHECK(status == TW_E_DEVICE);
  return model->api().last_error(nullptr);
}

const std::string kIss = std::string("iss:") + TW_VDLA_ISS;

}  // namespace

TEST_CASE("quantized layers run on the VDLA") {
  const Address here(kIss + "?races=1");
  const Graph graph = layers("", "");
  CHECK(convolutions(stays(graph)) == 2);
  for (const int threads : {1, 2}) {
    Target target = vdla_target();
    target.devices[0].virtual_threads = threads;
    check(graph, target);
  }
#ifdef TW_VDLA_RTL
  const Address core(std::string("rtl:") + TW_VDLA_RTL);
  check(graph, vdla_target());
#else
  MESSAGE("SKIPPED: no Verilator on this machine (scripts/setup.sh vdla)");
#endif
}

TEST_CASE("an operator that the VDLA lacks runs on the processor between two of its layers") {
  const Address here(kIss);
  const Graph graph = layers("%h: i8[1, 32, 10, 8] = unary(%q1) function=neg\n", "%h");
  const std::vector<std::string> reasons = stays(graph);
  CHECK(std::ranges::any_of(reasons, [](const std::string& r) {
    return r.find("(unary) on the processor: vdla: ") != std::string::npos;
  }));
  CHECK(convolutions(reasons) == 2);
  check(graph, vdla_target());
}

TEST_CASE("the body of a loop runs its layers on the VDLA in each iteration") {
  const Address here(kIss + "?races=1");
  op::Loop loop;
  loop.body.graph = std::make_shared<const Graph>(layers("", "", "32"));
  loop.trip = {Expr(3)}, loop.carried = 1;
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::i8, {Expr(1), Expr(32), Expr(10), Expr(8)}, {}});
  Expected<ValueId> y = graph.add(loop, {x}, "y");
  if (!y) FAIL(error_text(y.takeError()));
  graph.add_output(*y, "y");
  // The device runs the two layers between blocked values.
  CHECK(convolutions(stays(graph)) == 2);
  check(graph, vdla_target());
}

TEST_CASE("the VDLA's driver says what is missing") {
  CHECK(said(kIss) == "");
  CHECK(said(kIss + "?latency=100&races=1") == "");
  CHECK(said("abacus:").find("there a libtilewright_vdla_abacus.so") != std::string::npos);
  CHECK(said("iss:/nowhere.so").find("cannot open /nowhere.so") != std::string::npos);
  CHECK(said(kIss + "?speed=1").find("takes latency, bytes, jitter, seed, races") !=
        std::string::npos);
#ifdef TW_VDLA_RTL
  CHECK(said(std::string("rtl:") + TW_VDLA_RTL) == "");
  const std::string other = said(std::string("rtl:") + TW_VDLA_RTL_SMALL);
  CHECK(other.find("its core is 16x8 bus 8 inp 64 wgt 32 acc 64 prm 16 queue 2 lanes 8") !=
        std::string::npos);
  CHECK(other.find(
            "the model is for 16x16 bus 16 inp 2048 wgt 512 acc 2048 prm 64 queue 16 lanes 4") !=
        std::string::npos);
#endif
}

}  // namespace tw
