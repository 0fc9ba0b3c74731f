// tilewright run: runs a compiled model once, or an ONNX file by the reference evaluators. Prints a
// line for each output, and writes .npy files when asked to.
#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "driver/compare/compare.h"
#include "driver/compile/example_sizes.h"
#include "driver/run/device_report.h"
#include "driver/run/model_run.h"
#include "driver/run/pictures.h"
#include "frontend/frontend.h"
#include "ir/graph/strings.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

struct RunArgs {
  std::string file, output_dir, device, forms, pixels, inputs_dir;
  std::vector<std::string> pictures;  // NAME=FILE
  InputSources inputs;
  int threads = 0;
  bool no_check = false;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
struct Results {
  std::vector<NamedTensor> inputs, outputs;  // inputs: empty unless they are to be saved
  std::vector<DeviceReport> devices;
};

struct Picture {
  std::string output, file;
};

// The outputs that --picture names. Errors: no such output, a file that is no picture.
Expected<std::vector<Picture>> pictures_of(const RunArgs& args,
                                           const std::vector<std::string>& outputs) {
  std::vector<Picture> pictures;
  for (const std::string& text : args.pictures) {
    const size_t equals = text.find('=');
    Picture picture = equals == std::string::npos
                          ? Picture{outputs.size() == 1 ? outputs.front() : "", text}
                          : Picture{text.substr(0, equals), text.substr(equals + 1)};
    if (!is_picture(picture.file))
      return make_error(DiagCode::invalid_argument,
                        "--picture '{0}': NAME=FILE with a file that ends with .png or .jpg", text);
    if (std::ranges::find(outputs, picture.output) == outputs.end())
      return make_error({DiagCode::invalid_argument,
                         "--picture: the model has no output '" + picture.output + "'",
                         {},
                         {"its outputs are " + llvm::join(outputs, ", ")}});
    TW_TRY(check_writable(picture.file));
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

void keep_inputs(const RunArgs& args, const std::vector<TensorSpec>& specs, const Inputs& inputs,
                 Results& results) {
  for (size_t i = 0; i < specs.size() && !args.inputs_dir.empty(); ++i)
    results.inputs.push_back({specs[i].name, inputs.tensors[i]});
}

Error check_files(const RunArgs& args, const Inputs& inputs, const std::vector<TensorSpec>& specs,
                  const std::vector<std::string>& outputs, FileRoles files) {
  for (const std::string& file : inputs.files) files.reads("an input", file);
  for (const TensorSpec& spec : specs)
    if (!args.inputs_dir.empty())
      files.writes("input '" + spec.name + "'", output_path(args.inputs_dir, spec.name));
  TW_ASSIGN(const std::vector<Picture> pictures, pictures_of(args, outputs));
  for (const Picture& picture : pictures)
    files.writes("the picture of '" + picture.output + "'", picture.file);
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
  const std::vector<TensorSpec> specs = input_specs(api);
  TW_ASSIGN(Inputs inputs, load_inputs(specs, args.inputs));
  FileRoles files;
  files.reads("the model", args.file);
  TW_TRY(check_files(args, inputs, specs, names, std::move(files)));
  Results results;
  keep_inputs(args, specs, inputs, results);
  TW_ASSIGN(ModelRun model_run, ModelRun::create(api, std::move(inputs), args.threads));
  TW_TRY(model_run.run());
  for (size_t i = 0; i < names.size(); ++i)
    results.outputs.push_back({names[i], model_run.outputs()[i]});
  TW_ASSIGN(results.devices, device_reports(model_run));
  return results;
}

// Evaluates the model operator by operator, without passes and kernels.
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
  const std::vector<TensorSpec> specs = with_names(input_specs(model.graph), model.symbol_names);
  TW_ASSIGN(const Inputs inputs, load_inputs(specs, sources));
  std::vector<std::string> names;
  for (const Graph::Output& output : model.graph.outputs()) names.push_back(output.name);
  TW_TRY(check_files(args, inputs, specs, names, files));
  TW_ASSIGN(std::vector<Tensor> made, evaluate(model.graph, inputs.tensors));
  TW_TRY(files.models_are_unchanged());
  Results results;
  keep_inputs(args, specs, inputs, results);
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

// Saves inputs and pictures. Returns the files by the names of their tensors.
Expected<std::vector<std::pair<std::string, std::string>>> save_rest(const RunArgs& args,
                                                                     const Results& results) {
  constexpr double kWhite = 255;  // scale for floats from 0 to 1
  std::vector<std::pair<std::string, std::string>> written;
  for (const NamedTensor& input : results.inputs) {
    written.emplace_back(input.name, output_path(args.inputs_dir, input.name));
    TW_TRY(save_output(written.back().second, input.tensor));
  }
  TW_ASSIGN(const InputForms forms, parse_input_forms(args.pixels));
  std::vector<std::string> names;
  for (const NamedTensor& output : results.outputs) names.push_back(output.name);
  TW_ASSIGN(const std::vector<Picture> pictures, pictures_of(args, names));
  for (const Picture& picture : pictures) {
    const NamedTensor& output = *std::ranges::find(results.outputs, picture.output,
                                                   &NamedTensor::name);
    const auto given = forms.of.find(picture.output);
    InputForm form = given == forms.of.end() ? InputForm() : given->second;
    if (given == forms.of.end() && is_float(output.tensor.dtype)) form.scale = {kWhite};
    TW_TRY(save_picture(picture.file, output.name, output.tensor, form));
    written.emplace_back(picture.output, picture.file);
  }
  return written;
}

Expected<int> run(RunArgs args, Console& console) {
  TW_ASSIGN(args.inputs.forms, parse_input_forms(args.forms));
  TW_TRY(parse_input_forms(args.pixels).takeError());
  TW_ASSIGN(const bool artifact, is_artifact(args.file));
  TW_ASSIGN(const Results results, artifact ? run_library(args) : evaluate_model(args));
  TW_ASSIGN(const auto written, save_rest(args, results));
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
  Json::Array files;
  for (const auto& [name, file] : written)
    files.push_back(Json::Object{{"name", name}, {"file", file}});
  if (!files.empty()) result.push_back({"written", files});
  if (console.json) return write_json(console, result), kExitOk;
  for (const auto& [name, file] : written) console.out << name << "  -> " << file << "\n";
  console.out << to_string(results.devices);
  return kExitOk;
}

}  // namespace

CommandRun define_run(Flags& flags) {
  auto args = std::make_shared<RunArgs>();
  flags.argument("FILE", args->file,
                 "A compiled model; or an ONNX file, which is not compiled: each operator is "
                 "evaluated by its definition, as verify --reference operators does");
  declare(flags, args->inputs);
  flags.text("--inputs", args->forms, "FILE|YAML",
             "How pictures become inputs: {image: {fit: letterbox, scale: 0.0039}}, as of compile; "
             "a library that was compiled with --inputs does the rest itself");
  flags.text("--save-inputs", args->inputs_dir, "DIR",
             "Write every input there as NAME.npy, those of --random too");
  flags.repeated("--picture", args->pictures, "NAME=FILE",
                 "Write this output as a picture, .png or .jpg; floats are 0 to 1, or as --pixels "
                 "says");
  flags.text("--pixels", args->pixels, "FILE|YAML",
             "Of --picture: how outputs become pixels, {image: {scale: 127.5, mean: -127.5}}: "
             "value * scale - mean, over std");
  flags.integer("--threads", args->threads,
                "Run a library on so many threads; 0: as many as this process may use");
  flags.text("--device", args->device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  flags.text("-d,--output-dir", args->output_dir, "DIR",
             "Write every output there as NAME.npy, with '/' as '_'");
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return run(*args, console); };
}

}  // namespace tw
