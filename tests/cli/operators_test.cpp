// Every lowering and its default schedule, compiled, against the reference evaluators. The cases
// are small graphs in text form. Each runs on this host's full and baseline instruction sets, on
// one and two threads.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/compiled.h"

namespace {

struct Case {
  const char* name;
  const char* inputs;  // declarations, a line each: "%x: f32[1, 2] = input"
  const char* body;    // nodes; the last value is %y
};

const Case kCases[] = {
#include "tests/cli/operator_cases.inc"
};

std::string graph_text(const Case& c, const char* symbols) {
  return std::string("graph @case(") + symbols + ") {\n" + c.inputs + "\n" + c.body +
         "\noutput %y\n}\n";
}

// Deterministic values with ties and signs. Bytes take all values; wider integers stay small, so
// that they can be indices.
tw::Tensor make_input(const tw::TensorType& type, uint64_t seed, int64_t symbol) {
  std::vector<int64_t> shape;
  for (const tw::Expr& e : type.shape)
    shape.push_back(tw::eval_int(e, [&](std::string_view) { return symbol; }));
  tw::Tensor t = tw::Tensor::zeros(type.dtype, shape);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (int64_t i = 0; i < t.size(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    auto r = static_cast<int64_t>(state >> 40 & 0xffff);
    if (tw::is_float(type.dtype)) t.set(i, static_cast<double>(r - 0x8000) / 0x4000);
    else
      t.set_int(i, type.dtype == tw::DType::boolean   ? r & 1
                   : tw::dtype_bytes(type.dtype) == 1 ? r
                                                      : r % 3);
  }
  return t;
}

double tolerance(tw::DType t) {
  return t == tw::DType::f16 ? 2e-3 : t == tw::DType::bf16 ? 2e-2 : tw::is_float(t) ? 2e-5 : 0;
}

void compare(const tw::Tensor& want, const tw::Tensor& got) {
  double span = 1;
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.at(i))) span = std::max(span, std::fabs(want.at(i)));
  int reported = 0;
  for (int64_t i = 0; i < want.size() && reported < 3; ++i) {
    double a = want.at(i), b = got.at(i);
    bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                std::fabs(a - b) <= tolerance(want.dtype) * span;
    if (!same) {
      ++reported;
      FAIL_CHECK("element " << i << ": " << b << ", expected " << a);
    }
  }
}

void run_case(const Case& c, const tw::Target& target, int64_t symbol) {
  bool symbolic = std::string(c.inputs).find("batch") != std::string::npos;
  tw::Expected<tw::Graph> graph = tw::parse_graph(graph_text(c, symbolic ? "batch" : ""), c.name);
  if (!graph) FAIL(tw::error_text(graph.takeError()));
  std::vector<tw::Tensor> inputs;
  for (tw::ValueId v : graph->inputs())
    inputs.push_back(make_input(graph->value(v).type, inputs.size() + 7, symbol));
  auto expected = tw::evaluate(*graph, inputs);
  if (!expected) FAIL(tw::error_text(expected.takeError()));
  for (int threads : {1, 2}) {
    INFO(threads << " thread(s)");
    std::vector<tw::Tensor> got = tw::test::run_compiled(*graph, inputs, *expected, target,
                                                         threads);
    for (size_t i = 0; i < got.size(); ++i) compare((*expected)[i], got[i]);
  }
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
