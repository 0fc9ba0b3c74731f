#include "cli/commands/timed_library.h"

#include "cli/progress.h"
#include "cli/targets.h"
#include "driver/compile/compile.h"
#include "driver/run/device_report.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/tuned_schedules.h"
#include "packager/artifact.h"

namespace tw {
namespace {

// The library to time: the file itself, or the compiled model in `folder`
Expected<std::string> library_of(const TimedArgs& args, const std::string& folder,
                                 Console& console) {
  TW_ASSIGN(const bool artifact, is_artifact(args.file));
  if (artifact) return args.file;
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  with_virtual_threads(target, args.virtual_threads);
  CompileOptions options;
  options.model = args.file;
  options.output = folder + "/model.so";
  options.name = "model";
  options.schedules = tuned_schedules({.lock = lock_beside(args.file)});
  Progress progress(console);
  TW_ASSIGN(
      const CompileReport report,
      compile_model(options, target, [&](const std::string& stage) { progress.begin(stage); }));
  progress.end();
  return report.output;
}

}  // namespace

Expected<TimedLibrary> TimedLibrary::open(const TimedArgs& args, int threads, Console& console) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  TW_ASSIGN(std::string library, library_of(args, folder.path(), console));
  use_device(args.device);
  TW_ASSIGN(LoadedModel model,
            LoadedModel::open(library, args.no_check ? Integrity::trust : Integrity::check));
  TW_ASSIGN(const std::string text, read_manifest(library, Integrity::trust));  // just checked
  TW_ASSIGN(const Manifest all, parse_manifest(text, library));
  Manifest manifest = path_of(all, model.api().target);  // the program that runs here
  InputSources sources = args.inputs;
  if (!sources.random) sources.random = 0;
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model.api()), sources));
  TimedLibrary timed(std::move(library), std::move(folder), std::move(model), std::move(manifest),
                     std::move(inputs));
  TW_ASSIGN(timed.run_, ModelRun::create(timed.api(), timed.inputs_, threads));
  for (int i = 0; i < args.warmup; ++i) TW_TRY(timed.run_->run());
  return timed;
}

Expected<Target> TimedLibrary::target() const {
  return parse_target(manifest_.target_yaml, path_ + " (its manifest's target)");
}

Expected<std::vector<double>> TimedLibrary::time_calls(const TimingOptions& timing) {
  TW_ASSIGN(std::vector<double> ms, tw::time_calls(*run_, timing));
  if (manifest_.calls.size() != ms.size())
    return make_error(DiagCode::invalid_model,
                      "'{0}': the manifest lists {1} calls, the library has {2}", path_,
                      manifest_.calls.size(), ms.size());
  return ms;
}

void declare(Flags& flags, TimedArgs& args) {
  flags.argument(
      "FILE", args.file,
      "A compiled model; or an ONNX file, which is compiled first, to a file that does not stay");
  flags.text("-t,--target", args.target, "NAME|FILE",
             "For an ONNX file: what to compile for; default: this machine");
  flags.integer("--virtual-threads", args.virtual_threads, "For an ONNX file: as of compile");
  flags.text("--device", args.device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  declare(flags, args.inputs);
  flags.integer("--threads", args.threads,
                "Run on so many threads; 0: as many as this process may use");
  flags.integer("--runs", args.timing.runs, "So many runs; 0: as many as --seconds allows");
  flags.number("--seconds", args.timing.seconds, "S",
               "For how long, when --runs does not say; at least one run; default 1");
  flags.integer("--warmup", args.warmup, "Runs before the clock starts; default 3");
  define_no_check(flags, args.no_check);
}

}  // namespace tw
