// tilewright verify: a compiled model against stored outputs, or against the reference evaluation
// of its ONNX file.
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/per_node.h"
#include "cli/progress.h"
#include "driver/compile/manifest.h"
#include "driver/run/device_report.h"
#include "driver/run/model_run.h"
#include "driver/run/reference.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

struct VerifyArgs {
  std::string library, model, device, reference = "f64";
  InputSources inputs;
  double tolerance = 1e-4;
  int threads = 0;
  bool per_node = false, no_check = false;
};

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

struct Reference {
  std::vector<Tensor> outputs;
  Inputs inputs;  // in the graph's order
};

Expected<Target> target_of(const Manifest& manifest, const std::string& library) {
  return parse_target(manifest.target_yaml, library + " (its manifest's target)");
}

Expected<Reference> make_reference(const VerifyArgs& args, const Manifest& manifest,
                                   const Inputs& inputs, const tw_api& api, Console& console) {
  const std::optional<ReferenceKind> kind = reference_from_name(args.reference);
  Progress progress(console);
  progress.begin("import");
  TW_ASSIGN(Model model, import_onnx(args.model, {manifest.dims}));
  if (model.sha256 != manifest.model_sha256)
    progress.print("warning: '" + args.library + "' was not compiled from '" + args.model +
                   "' as it is now\n");
  Reference r;
  r.inputs.symbols = inputs.symbols;
  TW_ASSIGN(r.inputs.tensors, inputs_of(model.graph, inputs, api));
  progress.begin("reference");
  TW_ASSIGN(const Target target, target_of(manifest, args.library));
  TW_ASSIGN(r.outputs, reference_outputs(*kind, std::move(model), r.inputs, target));
  if (r.outputs.size() != static_cast<size_t>(api.output_count))
    return make_error(DiagCode::invalid_argument, "the library has {0} outputs, '{1}' has {2}",
                      api.output_count, args.model, r.outputs.size());
  return r;
}

Expected<PerNodeReport> per_node(const VerifyArgs& args, const Manifest& manifest,
                                 const Reference& reference) {
  CompileOptions options;
  options.model = args.model;
  options.dims = manifest.dims;
  options.pipeline = manifest.pipeline;
  options.algorithms = manifest.algorithms;
  options.name = "kept";
  TW_ASSIGN(const Target target, target_of(manifest, args.library));
  return compare_nodes(options, target, reference.inputs, reference.outputs, args.tolerance,
                       args.threads);
}

Error check_args(const VerifyArgs& args) {
  std::error_code none;
  if (!args.inputs.data.empty() && !std::filesystem::is_directory(args.inputs.data, none))
    return make_error(DiagCode::io, "--data '{0}' is not a folder", args.inputs.data);
  if (args.model.empty() && args.inputs.data.empty())
    return make_error(
        DiagCode::invalid_argument,
        "nothing to compare with: give the ONNX model, or --data with stored outputs");
  if (args.model.empty() && args.per_node)
    return make_error(DiagCode::invalid_argument, "--per-node needs the ONNX model");
  if (!reference_from_name(args.reference))
    return make_error(DiagCode::invalid_argument, "--reference '{0}' is none of f64, operators",
                      args.reference);
  return Error::success();
}

Expected<int> verify(const VerifyArgs& args, Console& console) {
  TW_TRY(check_args(args));
  use_device(args.device);
  TW_ASSIGN(const LoadedModel model,
            LoadedModel::open(args.library, args.no_check ? Integrity::trust : Integrity::check));
  // Checked a moment ago
  TW_ASSIGN(const std::string text, read_manifest(args.library, Integrity::trust));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, args.library));
  InputSources flags = args.inputs;
  if (!flags.random && flags.files.empty() && flags.data.empty()) flags.random = 0;
  TW_ASSIGN(const Inputs inputs, load_inputs(input_specs(model.api()), flags));
  TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), inputs, args.threads));
  TW_TRY(run.run());

  std::vector<Tensor> want;
  if (!flags.data.empty()) {
    TW_ASSIGN(want, stored_outputs(flags.data, model.api()));
    if (want.empty() && args.model.empty())
      return make_error(DiagCode::io,
                        "'{0}' has no output_0.pb: give the ONNX model to compare with",
                        flags.data);
  }
  const std::string source = want.empty() ? args.reference : "stored";
  Reference reference;
  if (want.empty() || args.per_node) {
    TW_ASSIGN(reference, make_reference(args, manifest, inputs, model.api(), console));
    if (want.empty()) want = reference.outputs;
  }

  bool same = true;
  Json::Array list;
  for (size_t i = 0; i < want.size(); ++i) {
    const Difference d = compare(run.outputs()[i], want[i], args.tolerance);
    same &= d.same;
    const std::string name = model.api().outputs[i].name;
    list.push_back(Json::Object{{"name", name}, {"difference", to_json(d)}});
    if (!console.json)
      console.out << (d.same ? "ok   " : "OFF  ") << name << ": " << to_string(d) << "\n";
  }
  Json::Object result{
      {"ok", same}, {"against", source}, {"tolerance", args.tolerance}, {"outputs", list}};
  if (args.per_node) {
    TW_ASSIGN(const PerNodeReport report, per_node(args, manifest, reference));
    if (!console.json) print_report(console, report, same);
    same &= !report.first;
    result.front().value = same;
    result.push_back({"per_node", to_json(report)});
  }
  if (console.json) write_json(console, result);
  return same ? int{kExitOk} : int{kExitMismatch};
}

}  // namespace

CommandRun define_verify(Flags& flags) {
  auto args = std::make_shared<VerifyArgs>();
  flags.argument("LIBRARY", args->library, "The compiled model");
  flags.argument("MODEL", args->model,
                 "The ONNX file it was compiled from: what it computes is compared with", false);
  declare(flags, args->inputs);
  flags.text("--data", args->inputs.data, "DIR",
             "A folder with input_0.pb, ... and, to compare with, output_0.pb, ... (or .npy)");
  flags.text("--reference", args->reference, "NAME",
             "What the ONNX file's outputs are computed by: f64 (default), the whole model in "
             "doubles, compiled as plain loops; or operators, one "
             "evaluator an operator, each rounded to its type: minutes for a large model");
  flags.text("--device", args->device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  flags.number("--tolerance", args->tolerance, "T",
               "Largest error that passes, relative to an output's range; default 1e-4");
  flags.flag("--per-node", args->per_node,
             "Compile again with every fused group's result kept, and name the first that is off");
  flags.integer("--threads", args->threads, "0: as many as this process may use");
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return verify(*args, console); };
}

}  // namespace tw
