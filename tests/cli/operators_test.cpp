// Every lowering and its default schedule, compiled, against the reference evaluators: small graphs in text form, each for
// this host and for the host's baseline instruction set, at one and two threads.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>

#include "cli/compile.h"
#include "packager/loaded_model.h"

namespace {

struct Case {
  const char* name;
  const char* inputs;   // declarations, a line each: "%x: f32[1, 2] = input"
  const char* body;     // nodes; the last value is %y
};

const Case kCases[] = {
#include "tests/cli/operator_cases.inc"
};

std::string graph_text(const Case& c, const char* symbols) {
  return std::string("graph @case(") + symbols + ") {\n" + c.inputs + "\n" + c.body + "\noutput %y\n}\n";
}

// Deterministic values with ties and signs; integers stay small so that they can be indices.
tw::Tensor make_input(const tw::TensorType& type, uint64_t seed, int64_t symbol) {
  std::vector<int64_t> shape;
  for (const tw::Expr& e : type.shape) shape.push_back(tw::eval_int(e, [&](std::string_view) { return symbol; }));
  tw::Tensor t = tw::Tensor::zeros(type.dtype, shape);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (int64_t i = 0; i < t.size(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    auto r = static_cast<int64_t>(state >> 40 & 0xffff);
    if (tw::is_float(type.dtype)) t.set(i, static_cast<double>(r - 0x8000) / 0x4000);
    else t.set_int(i, type.dtype == tw::DType::boolean ? r & 1 : r % 3);
  }
  return t;
}

double tolerance(tw::DType t) { return t == tw::DType::f16 ? 2e-3 : t == tw::DType::bf16 ? 2e-2 : tw::is_float(t) ? 2e-5 : 0; }

void compare(const tw::Tensor& want, const tw::Tensor& got) {
  double span = 1;
  for (int64_t i = 0; i < want.size(); ++i) if (std::isfinite(want.at(i))) span = std::max(span, std::fabs(want.at(i)));
  int reported = 0;
  for (int64_t i = 0; i < want.size() && reported < 3; ++i) {
    double a = want.at(i), b = got.at(i);
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance(want.dtype) * span;
    if (!same) {
      ++reported;
      FAIL_CHECK("element " << i << ": " << b << ", expected " << a);
    }
  }
}

tw_tensor describe(tw::Tensor& t) {
  return {t.bytes.data(), t.bytes.size(), tw::dtype_info(t.dtype).onnx, static_cast<int32_t>(t.shape.size()), t.shape.data()};
}

void run_case(const Case& c, const tw::Target& target, int64_t symbol) {
  bool symbolic = std::string(c.inputs).find("batch") != std::string::npos;
  tw::Expected<tw::Graph> parsed = tw::parse_graph(graph_text(c, symbolic ? "batch" : ""), c.name);
  if (!parsed) FAIL(tw::error_text(parsed.takeError()));
  tw::Graph graph = *parsed;
  std::vector<tw::Tensor> inputs;
  for (tw::ValueId v : graph.inputs()) inputs.push_back(make_input(graph.value(v).type, inputs.size() + 7, symbol));
  auto expected = tw::evaluate(graph, inputs);
  if (!expected) FAIL(tw::error_text(expected.takeError()));

  tw::Model model;
  model.graph = std::move(graph);
  model.name = "case";
  tw::CompileOptions options;
  std::string path = "/tmp/tilewright-case-" + std::to_string(getpid()) + ".so";
  options.output = path;
  options.name = "op_case";
  auto report = tw::compile_graph(std::move(model), options, target);
  if (!report) FAIL(tw::error_text(report.takeError()));
  {
    auto loaded = tw::LoadedModel::open(path);
    if (!loaded) FAIL(tw::error_text(loaded.takeError()));
    for (int threads : {1, 2}) {
      INFO(threads << " thread(s)");
      tw_options run_options{};
      run_options.size = sizeof run_options;
      run_options.threads = threads;
      tw_context* context = nullptr;
      REQUIRE(loaded->api().create(&run_options, &context) == TW_OK);
      std::vector<tw_tensor> in, out;
      std::vector<tw::Tensor> results;
      for (tw::Tensor& t : inputs) in.push_back(describe(t));
      for (const tw::Tensor& t : *expected) results.push_back(tw::Tensor::zeros(t.dtype, t.shape));
      for (tw::Tensor& t : results) out.push_back(describe(t));
      REQUIRE(loaded->api().run(context, in.data(), out.data()) == TW_OK);
      for (size_t i = 0; i < results.size(); ++i) compare((*expected)[i], results[i]);
      loaded->api().destroy(context);
    }
  }
  unlink(path.c_str());
  unlink((path.substr(0, path.size() - 3) + ".h").c_str());
}

}  // namespace

TEST_CASE("operators, compiled for this host, equal their reference evaluators") {
  tw::Target host = tw::host_target();
  for (const Case& c : kCases) {
    SUBCASE(c.name) { run_case(c, host, 5); }
  }
}

TEST_CASE("operators, compiled for the host's baseline, equal their reference evaluators") {
  tw::Target baseline = tw::baseline_target(tw::host_target().arch());
  for (const Case& c : kCases) {
    SUBCASE(c.name) { run_case(c, baseline, 3); }
  }
}
