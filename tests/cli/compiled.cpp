#include "tests/cli/compiled.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace tw::test {

CompileReport report_of(const Graph& graph, const Target& target, const CompileOptions& options) {
  Model model;
  model.graph = graph;
  model.name = "layer";
  Expected<CompileReport> report = compile_graph(std::move(model), options, target);
  if (!report) FAIL(error_text(report.takeError()));
  return std::move(*report);
}

CompileReport report_of(const Graph& graph, const Target& target, Emit emit,
                        const AlgorithmOptions& algorithms) {
  CompileOptions options;
  options.emit = emit;
  options.algorithms = algorithms;
  return report_of(graph, target, options);
}

tw_tensor describe(Tensor& t) {
  return {t.bytes.data(), t.bytes.size(), dtype_info(t.dtype).onnx,
          static_cast<int32_t>(t.shape.size()), t.shape.data()};
}

LoadedModel compile_for(const Graph& graph, const Target& target,
                        const AlgorithmOptions& algorithms) {
  Model model;
  model.graph = graph;
  model.name = "case";
  CompileOptions options;
  static int count = 0;  // dlopen takes libraries of equal names for one
  const std::string stem = "/tmp/tilewright-case-" + std::to_string(getpid()) + "-" +
                           std::to_string(count++);
  options.output = stem + ".so";
  options.name = "op_case";
  options.algorithms = algorithms;
  options.chunk_ns = 0;  // small kernels run in parallel too
  auto report = compile_graph(std::move(model), options, target);
  if (!report) FAIL(error_text(report.takeError()));
  auto loaded = LoadedModel::open(options.output);
  unlink(options.output.c_str());
  unlink((stem + ".h").c_str());
  if (!loaded) FAIL(error_text(loaded.takeError()));
  return std::move(*loaded);
}

std::vector<Tensor> run_compiled(const Graph& graph, std::vector<Tensor> inputs,
                                 const std::vector<Tensor>& like, const Target& target, int threads,
                                 const AlgorithmOptions& algorithms) {
  const LoadedModel loaded = compile_for(graph, target, algorithms);
  tw_options run_options{};
  run_options.size = sizeof run_options;
  run_options.threads = threads;
  tw_context* context = nullptr;
  REQUIRE(loaded.api().create(&run_options, &context) == TW_OK);
  std::vector<tw_tensor> in, out;
  std::vector<Tensor> results;
  for (Tensor& t : inputs) in.push_back(describe(t));
  for (const Tensor& t : like) results.push_back(Tensor::zeros(t.dtype, t.shape));
  for (Tensor& t : results) out.push_back(describe(t));
  CHECK(loaded.api().run(context, in.data(), out.data()) == TW_OK);
  loaded.api().destroy(context);
  return results;
}

}  // namespace tw::test
