#include "driver/run/compiled_network.h"

#include "driver/run/model_run.h"
#include "packager/output_file.h"

namespace tw {
namespace {

void write_into(const TemporaryFolder& folder, CompileOptions& options) {
  options.name = "network";
  options.output = folder.path() + "/network.so";
  options.header = options.weights = options.dump_dir = "";
  options.emit = Emit::so;
  options.on_planned = nullptr;
  options.passes = {};
}

}  // namespace

Expected<CompiledNetwork> CompiledNetwork::load(TemporaryFolder folder, CompileReport report) {
  TW_ASSIGN(LoadedModel loaded, LoadedModel::open(report.output, Integrity::trust));
  return CompiledNetwork(std::move(folder), std::move(report), std::move(loaded));
}

Expected<CompiledNetwork> CompiledNetwork::compile(CompileOptions options, const Target& target) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  write_into(folder, options);
  TW_ASSIGN(CompileReport report, compile_model(options, target));
  return load(std::move(folder), std::move(report));
}

Expected<CompiledNetwork> CompiledNetwork::compile(Model model, CompileOptions options,
                                                   const Target& target) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  write_into(folder, options);
  TW_ASSIGN(CompileReport report, compile_graph(std::move(model), options, target));
  return load(std::move(folder), std::move(report));
}

Expected<CompiledNetwork> CompiledNetwork::compile(const std::string& bytes, CompileOptions options,
                                                   const Target& target) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  write_into(folder, options);
  options.model = folder.path() + "/network.onnx";
  TW_TRY(write_file(options.model, bytes));
  TW_ASSIGN(CompileReport report, compile_model(options, target));
  return load(std::move(folder), std::move(report));
}

Expected<std::vector<Tensor>> CompiledNetwork::run(Inputs inputs, int threads) const {
  return outputs_of(api(), std::move(inputs), threads);
}

Expected<std::vector<Tensor>> outputs_of(const tw_api& api, Inputs inputs, int threads) {
  TW_ASSIGN(ModelRun run, ModelRun::create(api, std::move(inputs), threads));
  TW_TRY(run.run());
  return run.outputs();
}

}  // namespace tw
