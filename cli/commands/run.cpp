// tilewright run: one run of a compiled model; a line an output, and .npy files when asked for.
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "driver/compare/compare.h"
#include "driver/run/device_report.h"
#include "driver/run/model_run.h"
#include "ir/graph/strings.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

struct RunArgs {
  std::string library, output_dir, device;
  InputSources inputs;
  int threads = 0;
  bool no_check = false;
};

Error check_files(const RunArgs& args, const tw_api& api, const Inputs& inputs) {
  FileRoles files;
  files.reads("the library", args.library);
  for (const std::string& file : inputs.files) files.reads("an input", file);
  for (int32_t i = 0; i < api.output_count && !args.output_dir.empty(); ++i)
    files.writes(std::string("output '") + api.outputs[i].name + "'",
                 output_path(args.output_dir, api.outputs[i].name));
  return files.check();
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

Expected<int> run(const RunArgs& args, Console& console) {
  use_device(args.device);
  TW_ASSIGN(const LoadedModel model,
            LoadedModel::open(args.library, args.no_check ? Integrity::trust : Integrity::check));
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model.api()), args.inputs));
  TW_TRY(check_files(args, model.api(), inputs));
  TW_ASSIGN(ModelRun model_run, ModelRun::create(model.api(), std::move(inputs), args.threads));
  TW_TRY(model_run.run());
  Json::Array list;
  for (size_t i = 0; i < model_run.outputs().size(); ++i) {
    const Tensor& tensor = model_run.outputs()[i];
    const std::string name = model.api().outputs[i].name;
    const bool strings = tensor.dtype == DType::string;
    const Summary s = strings ? Summary() : summarize(tensor);
    std::string file;
    if (!args.output_dir.empty()) {
      file = output_path(args.output_dir, name);
      TW_TRY(save_output(file, tensor));
    }
    if (console.json) {
      Json::Object output = {{"name", name},
                             {"dtype", dtype_name(tensor.dtype)},
                             {"shape", json_array(tensor.shape)},
                             {"min", s.min},
                             {"max", s.max},
                             {"mean", s.mean},
                             {"argmax", s.argmax},
                             {"nan", s.nan},
                             {"infinite", s.infinite},
                             {"file", file.empty() ? Json() : Json(file)}};
      if (strings) output.push_back({"strings", strings_json(tensor)});
      list.push_back(std::move(output));
    } else {
      console.out << name << ": " << dtype_name(tensor.dtype) << shape_text(tensor.shape) << "  "
                  << (strings ? first_strings(tensor) : to_string(s))
                  << (file.empty() ? "" : "  -> " + file) << "\n";
    }
  }
  TW_ASSIGN(const std::vector<DeviceReport> devices, device_reports(model_run));
  Json::Object result{{"outputs", list}};
  if (!devices.empty()) result.push_back({"devices", to_json(devices)});
  if (console.json) write_json(console, result);
  else console.out << to_string(devices);
  return kExitOk;
}

}  // namespace

CommandRun define_run(Flags& flags) {
  auto args = std::make_shared<RunArgs>();
  flags.argument("LIBRARY", args->library, "The compiled model");
  declare(flags, args->inputs);
  flags.integer("--threads", args->threads, "0: as many as this process may use");
  flags.text("--device", args->device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  flags.text("-d,--output-dir", args->output_dir, "DIR",
             "Write every output there as NAME.npy, with '/' as '_'");
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return run(*args, console); };
}

}  // namespace tw
