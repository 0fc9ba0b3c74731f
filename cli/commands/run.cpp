// tilewright run: one run of a compiled model, or of an ONNX file by the reference evaluators; a
// line an output, and .npy files when asked for.
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "driver/compare/compare.h"
#include "driver/compile/example_sizes.h"
#include "driver/run/device_report.h"
#include "driver/run/model_run.h"
#include "frontend/frontend.h"
#include "ir/graph/strings.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

struct RunArgs {
  std::string file, output_dir, device;
  InputSources inputs;
  int threads = 0;
  bool no_check = false;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
struct Results {
  std::vector<NamedTensor> outputs;
  std::vector<DeviceReport> devices;
};

Error check_files(const RunArgs& args, const Inputs& inputs,
                  const std::vector<std::string>& outputs, FileRoles files) {
  for (const std::string& file : inputs.files) files.reads("an input", file);
  for (const std::string& name : outputs)
    if (!args.output_dir.empty())
      files.writes("output '" + name + "'", output_path(args.output_dir, name));
  return files.check();
}

Expected<Results> run_library(const RunArgs& args) {
  use_device(args.device);
  TW_ASSIGN(const LoadedModel model,
            LoadedModel::open(args.file, args.no_check ? Integrity::trust : Integrity::check));
  const tw_api& api = model.api();
  std::vector<std::string> names;
  for (int32_t i = 0; i < api.output_count; ++i) names.push_back(api.outputs[i].name);
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(api), args.inputs));
  FileRoles files;
  files.reads("the model", args.file);
  TW_TRY(check_files(args, inputs, names, std::move(files)));
  TW_ASSIGN(ModelRun model_run, ModelRun::create(api, std::move(inputs), args.threads));
  TW_TRY(model_run.run());
  Results results;
  for (size_t i = 0; i < names.size(); ++i)
    results.outputs.push_back({names[i], model_run.outputs()[i]});
  TW_ASSIGN(results.devices, device_reports(model_run));
  return results;
}

// The model is evaluated operator by operator, without passes and kernels.
Expected<Results> evaluate_model(const RunArgs& args) {
  if (!args.device.empty())
    return make_error(DiagCode::invalid_argument,
                      "--device is for a library; '{0}' is an ONNX file, which is evaluated here",
                      args.file);
  ImportOptions options;
  TW_ASSIGN(options.dims, parse_dims(args.inputs.dims));
  FileRoles files;
  files.reads_model(args.file);
  TW_ASSIGN(const Model model, import_onnx(args.file, options));
  InputSources sources = args.inputs;
  sources.dims.clear();  // bound by the import
  TW_ASSIGN(const Inputs inputs,
            load_inputs(with_names(input_specs(model.graph), model.symbol_names), sources));
  std::vector<std::string> names;
  for (const Graph::Output& output : model.graph.outputs()) names.push_back(output.name);
  TW_TRY(check_files(args, inputs, names, files));
  TW_ASSIGN(std::vector<Tensor> made, evaluate(model.graph, inputs.tensors));
  TW_TRY(files.models_are_unchanged());
  Results results;
  for (size_t i = 0; i < names.size(); ++i)
    results.outputs.push_back({names[i], std::move(made[i])});
  return results;
}

// "'a', 'b', ..."
std::string first_strings(const Tensor& tensor) {
  constexpr int64_t kShown = 8;
  std::string text;
  for (int64_t i = 0; i < std::min(tensor.size(), kShown); ++i)
    text += (i ? ", '" : "'") + std::string(string_at(tensor, i)) + "'";
  return text + (tensor.size() > kShown ? ", ..." : "");
}

Json strings_json(const Tensor& tensor) {
  Json::Array list;
  for (int64_t i = 0; i < tensor.size(); ++i) list.push_back(std::string(string_at(tensor, i)));
  return list;
}

Json output_json(const NamedTensor& output, const Summary& s, const std::string& file) {
  const Tensor& tensor = output.tensor;
  Json::Object json = {{"name", output.name},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"shape", json_array(tensor.shape)},
                       {"min", s.min},
                       {"max", s.max},
                       {"mean", s.mean},
                       {"argmax", s.argmax},
                       {"nan", s.nan},
                       {"infinite", s.infinite},
                       {"file", file.empty() ? Json() : Json(file)}};
  if (tensor.dtype == DType::string) json.push_back({"strings", strings_json(tensor)});
  return json;
}

Expected<int> run(const RunArgs& args, Console& console) {
  TW_ASSIGN(const bool artifact, is_artifact(args.file));
  TW_ASSIGN(const Results results, artifact ? run_library(args) : evaluate_model(args));
  Json::Array list;
  for (const NamedTensor& output : results.outputs) {
    const Tensor& tensor = output.tensor;
    const bool strings = tensor.dtype == DType::string;
    const Summary s = strings ? Summary() : summarize(tensor);
    std::string file;
    if (!args.output_dir.empty()) {
      file = output_path(args.output_dir, output.name);
      TW_TRY(save_output(file, tensor));
    }
    if (console.json) list.push_back(output_json(output, s, file));
    else
      console.out << output.name << ": " << dtype_name(tensor.dtype) << shape_text(tensor.shape)
                  << "  " << (strings ? first_strings(tensor) : to_string(s))
                  << (file.empty() ? "" : "  -> " + file) << "\n";
  }
  Json::Object result{{"outputs", list}};
  if (!results.devices.empty()) result.push_back({"devices", to_json(results.devices)});
  if (console.json) write_json(console, result);
  else console.out << to_string(results.devices);
  return kExitOk;
}

}  // namespace

CommandRun define_run(Flags& flags) {
  auto args = std::make_shared<RunArgs>();
  flags.argument("FILE", args->file,
                 "A compiled model; or an ONNX file, which is not compiled: each operator is "
                 "evaluated by its definition, as verify --reference operators does");
  declare(flags, args->inputs);
  flags.integer("--threads", args->threads, "Of a library; 0: as many as this process may use");
  flags.text("--device", args->device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  flags.text("-d,--output-dir", args->output_dir, "DIR",
             "Write every output there as NAME.npy, with '/' as '_'");
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return run(*args, console); };
}

}  // namespace tw
