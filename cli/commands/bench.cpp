// tilewright bench: times whole runs, or every kernel call, of a compiled model on one set of
// inputs.
#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/kernel_table.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/thread_plan.h"
#include "driver/compile/compile.h"
#include "driver/run/device_report.h"
#include "driver/run/temporary_folder.h"
#include "driver/run/time_model.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/tuned_schedules.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct BenchArgs {
  std::string file, target = "host", device;
  InputSources inputs;
  int threads = 0, runs = 0, warmup = 3, virtual_threads = 0;
  double seconds = 1;
  bool per_kernel = false, plan = false, no_check = false;
};

std::string padded(const char* pattern, double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

// The library to time: the file itself, or what the model in it compiles to, in `folder`.
Expected<std::string> library_of(const BenchArgs& args, const std::string& folder,
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

// What the calls of the library take, and what its manifest says of them.
struct TimedCalls {
  Manifest manifest;
  Target target;
  std::vector<double> ms;
};
Expected<TimedCalls> timed_calls(const BenchArgs& args, const std::string& library, ModelRun& run) {
  // Checked when it was loaded
  TW_ASSIGN(const std::string text, read_manifest(library, Integrity::trust));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, library));
  TimedCalls timed{path_of(manifest, run.api().target), {}, {}};
  TW_ASSIGN(timed.ms, time_calls(run, {args.runs, args.seconds}));
  if (timed.manifest.calls.size() != timed.ms.size())
    return make_error(DiagCode::invalid_model,
                      "'{0}': the manifest lists {1} calls, the library has {2}", library,
                      timed.manifest.calls.size(), timed.ms.size());
  TW_ASSIGN(timed.target,
            parse_target(timed.manifest.target_yaml, library + " (its manifest's target)"));
  return timed;
}

Error plan_threads(const BenchArgs& args, const std::string& library, ModelRun& run,
                   Console& console, Json::Object& result) {
  TW_ASSIGN(const TimedCalls timed, timed_calls(args, library, run));
  TW_ASSIGN(const ThreadPlan plan, thread_plan(timed.manifest, run.symbols(), timed.target,
                                               threads_or_all(args.threads), timed.ms));
  result.push_back({"plan", to_json(plan)});
  if (!console.json) console.out << to_string(plan, console.columns);
  return Error::success();
}

Error bench_calls(const BenchArgs& args, const std::string& library, ModelRun& run,
                  Console& console, Json::Object& result) {
  TW_ASSIGN(const TimedCalls timed, timed_calls(args, library, run));
  const auto& [manifest, target, ms] = timed;
  const int threads = threads_or_all(args.threads);
  TW_ASSIGN(const Peaks peaks, measure_peaks(target, threads));
  TW_ASSIGN(const KernelTable table, kernel_table(manifest, run.symbols(), peaks, ms));
  result.push_back({"peaks", to_json(peaks)});
  result.push_back({"calls", to_json(table)});
  if (!console.json) console.out << to_string(peaks) << "\n" << to_string(table, console.columns);
  return Error::success();
}

Expected<int> bench(const BenchArgs& args, Console& console) {
  if (args.plan && args.per_kernel)
    return make_error(DiagCode::invalid_argument,
                      "--plan is about threads that may not be there, --per-kernel about those "
                      "that run: one of both");
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  TW_ASSIGN(const std::string library, library_of(args, folder.path(), console));
  use_device(args.device);
  TW_ASSIGN(const LoadedModel model,
            LoadedModel::open(library, args.no_check ? Integrity::trust : Integrity::check));
  InputSources flags = args.inputs;
  if (!flags.random) flags.random = 0;
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model.api()), flags));
  const int threads = args.plan ? 1 : args.threads;  // shares are worked out of one thread's times
  TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), std::move(inputs), threads));
  for (int i = 0; i < args.warmup; ++i) TW_TRY(run.run());
  TW_ASSIGN(const std::vector<double> ms, time_runs(run, {args.runs, args.seconds}));
  const Statistics s = statistics(ms);
  Json::Object result{{"model", model.api().name},
                      {"target", model.api().target},
                      {"threads", threads},
                      {"min", s.min},
                      {"median", s.median},
                      {"p95", s.p95},
                      {"mean", s.mean},
                      {"ms", json_array(ms)}};
  if (!console.json)
    console.out << model.api().name << ": min " << padded("%.4f", s.min) << " ms, median "
                << padded("%.4f", s.median) << " ms, p95 " << padded("%.4f", s.p95) << " ms in "
                << ms.size() << " runs\n";
  TW_ASSIGN(const std::vector<DeviceReport> devices, device_reports(run));
  if (!devices.empty()) result.push_back({"devices", to_json(devices)});
  if (!console.json) console.out << to_string(devices);
  if (args.per_kernel) TW_TRY(bench_calls(args, library, run, console, result));
  if (args.plan) TW_TRY(plan_threads(args, library, run, console, result));
  if (console.json) write_json(console, result);
  return kExitOk;
}

}  // namespace

CommandRun define_bench(Flags& flags) {
  auto args = std::make_shared<BenchArgs>();
  flags.argument(
      "FILE", args->file,
      "A compiled model; or an ONNX file, which is compiled first, to a file that does not stay");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "For an ONNX file: what to compile for; default: this machine");
  flags.integer("--virtual-threads", args->virtual_threads, "For an ONNX file: as of compile");
  flags.text("--device", args->device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  declare(flags, args->inputs);
  flags.integer("--threads", args->threads, "0: as many as this process may use");
  flags.integer("--runs", args->runs, "So many runs; 0: as many as --seconds allows");
  flags.number("--seconds", args->seconds, "S",
               "For how long, when --runs does not say; at least one run; default 1");
  flags.integer("--warmup", args->warmup, "Runs before the clock starts; default 3");
  flags.flag(
      "--per-kernel", args->per_kernel,
      "Then time every kernel call, by the median, and compare with the machine's measured peaks");
  flags.flag("--plan", args->plan,
             "Run on one thread, and work out what --threads of any number would make of it: "
             "shares, imbalance, fork-joins");
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return bench(*args, console); };
}

}  // namespace tw
