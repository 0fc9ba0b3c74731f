#include "driver/compare/verify.h"

#include <algorithm>

#include "driver/run/model_run.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

// Every output of the folder, or none.
Expected<std::vector<Tensor>> stored_outputs(const std::string& dir, const tw_api& api) {
  std::vector<Tensor> list;
  for (size_t i = 0; i < static_cast<size_t>(api.output_count); ++i) {
    TW_ASSIGN(std::optional<Tensor> tensor, read_stored(dir, "output", i));
    if (!tensor && list.empty()) return list;
    if (!tensor) return make_error(DiagCode::io, "'{0}' has output_0 but no output_{1}", dir, i);
    list.push_back(std::move(*tensor));
  }
  return list;
}

// The library's inputs in the graph's order.
Expected<std::vector<Tensor>> inputs_of(const Graph& graph, const Inputs& inputs,
                                        const tw_api& api) {
  std::vector<Tensor> list;
  for (const ValueId id : graph.inputs()) {
    int32_t found = 0;
    while (found < api.input_count && api.inputs[found].name != graph.value(id).name) ++found;
    if (found == api.input_count)
      return make_error(DiagCode::invalid_argument,
                        "the library has no input '{0}': it was compiled from another model",
                        graph.value(id).name);
    list.push_back(inputs.tensors[static_cast<size_t>(found)]);
  }
  return list;
}

Expected<Target> target_of(const Manifest& manifest, const std::string& library) {
  return parse_target(manifest.target_yaml, library + " (its manifest's target)");
}

Expected<ModelReference> make_reference(const VerifyRequest& request, const Manifest& manifest,
                                        const Inputs& inputs, const tw_api& api,
                                        const OnStage& stage,
                                        const std::function<void(const std::string&)>& warn) {
  if (stage) stage("import");
  TW_ASSIGN(Model model,
            import_onnx(request.model, {manifest.dims, manifest.limits, manifest.given}));
  if (model.sha256 != manifest.model_sha256 && warn)
    warn("'" + request.library + "' was not compiled from '" + request.model + "' as it is now");
  ModelReference reference;
  reference.inputs.symbols = inputs.symbols;
  TW_ASSIGN(reference.inputs.tensors, inputs_of(model.graph, inputs, api));
  if (stage) stage("reference");
  TW_ASSIGN(const Target target, target_of(manifest, request.library));
  TW_ASSIGN(reference.outputs,
            reference_outputs(request.reference, std::move(model), reference.inputs, target));
  if (reference.outputs.size() != static_cast<size_t>(api.output_count))
    return make_error(DiagCode::invalid_argument, "the library has {0} outputs, '{1}' has {2}",
                      api.output_count, request.model, reference.outputs.size());
  return reference;
}

}  // namespace

bool VerifyReport::same() const {
  return std::ranges::all_of(outputs,
                             [](const VerifiedOutput& output) { return output.difference.same; });
}

Expected<VerifyReport> verify_model(const VerifyRequest& request, const OnStage& stage,
                                    const std::function<void(const std::string&)>& warn) {
  TW_ASSIGN(
      const LoadedModel model,
      LoadedModel::open(request.library, request.check ? Integrity::check : Integrity::trust));
  VerifyReport report;
  // Checked a moment ago
  TW_ASSIGN(const std::string text, read_manifest(request.library, Integrity::trust));
  TW_ASSIGN(report.manifest, parse_manifest(text, request.library));
  InputSources sources = request.inputs;
  if (!sources.random && sources.files.empty() && sources.data.empty()) sources.random = 0;
  TW_ASSIGN(const Inputs inputs, load_inputs(input_specs(model.api()), sources));
  TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), inputs, request.threads));
  TW_TRY(run.run());

  std::vector<Tensor> want;
  if (!sources.data.empty()) {
    TW_ASSIGN(want, stored_outputs(sources.data, model.api()));
    if (want.empty() && request.model.empty())
      return make_error(DiagCode::io,
                        "'{0}' has no output_0.pb: give the ONNX model to compare with",
                        sources.data);
  }
  report.stored = !want.empty();
  if (!report.stored || request.per_node) {
    TW_ASSIGN(report.reference,
              make_reference(request, report.manifest, inputs, model.api(), stage, warn));
    if (!report.stored) want = report.reference->outputs;
  }
  for (size_t i = 0; i < want.size(); ++i)
    report.outputs.push_back(
        {model.api().outputs[i].name, compare(run.outputs()[i], want[i], request.tolerance)});
  return report;
}

Expected<PerNodeReport> verify_nodes(const VerifyRequest& request, const VerifyReport& report) {
  CompileOptions options;
  options.model = request.model;
  options.dims = report.manifest.dims;
  options.limits = report.manifest.limits;
  options.given = report.manifest.given;
  options.pipeline = report.manifest.pipeline;
  options.algorithms = report.manifest.algorithms;
  options.name = "kept";
  TW_ASSIGN(const Target target, target_of(report.manifest, request.library));
  return compare_nodes(options, target, report.reference->inputs, report.reference->outputs,
                       request.tolerance, request.threads);
}

}  // namespace tw
