#include "driver/quantize/network.h"

#include "driver/compile/compile.h"
#include "driver/run/model_run.h"
#include "packager/output_file.h"

namespace tw {

Expected<CompiledNetwork> CompiledNetwork::compile(const std::string& bytes,
                                                   const NetworkBuild& build) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions options;
  options.model = folder.path() + "/network.onnx";
  options.output = folder.path() + "/network.so";
  options.dims = build.dims;
  TW_TRY(write_file(options.model, bytes));
  TW_ASSIGN(const CompileReport compiled, compile_model(options, build.target));
  TW_ASSIGN(LoadedModel loaded, LoadedModel::open(compiled.output, Integrity::trust));
  return CompiledNetwork(std::move(folder), std::make_unique<LoadedModel>(std::move(loaded)));
}

Expected<std::vector<Tensor>> CompiledNetwork::run(const Inputs& inputs) const {
  TW_ASSIGN(ModelRun run, ModelRun::create(model_->api(), inputs, 0));
  TW_TRY(run.run());
  return run.outputs();
}

}  // namespace tw
