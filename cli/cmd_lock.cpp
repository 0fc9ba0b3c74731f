// tilewright lock: what compile would choose now for every kernel of a model, written into tilewright.lock beside it.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/algorithm_flags.h"
#include "cli/commands.h"
#include "cli/compile.h"
#include "cli/file_roles.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "packager/output_file.h"

namespace tw {
namespace {

struct LockArgs {
  std::string model, target = "host", log;
  AlgorithmFlags algorithms;
  std::vector<std::string> dims;
  int threads = 1, virtual_threads = 0;
};

// --log, else the user's log where there is one.
std::string log_to_read(const LockArgs& args) {
  std::error_code none;
  const std::string own = default_log();
  return !args.log.empty() || own.empty() || !std::filesystem::exists(own, none) ? args.log : own;
}

std::vector<Pin> pins_of(const CompileReport& report) {
  std::vector<Pin> pins;
  for (const Pin& pin : report.schedules)
    if (!pin.task.empty()) pins.push_back(pin);
  return pins;
}

Expected<int> lock(const LockArgs& args, Console& console) {
  CompileOptions options;
  options.model = args.model;
  options.emit = Emit::scheduled;   // no code is needed
  TW_ASSIGN(options.dims, parse_dims(args.dims));
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  TW_ASSIGN(options.algorithms, args.algorithms.options(target));
  with_virtual_threads(target, args.virtual_threads);
  options.schedules.log = log_to_read(args);
  options.schedules.threads = args.threads;
  const std::string path = lock_beside(args.model);
  FileRoles files;
  files.reads_model(args.model);
  files.reads_target(args.target);
  files.reads("the tuning log", options.schedules.log);
  files.writes("the lock", path);
  TW_TRY(files.check());
  TW_ASSIGN(Lock lock, read_lock(path));
  Progress progress(console);
  TW_ASSIGN(const CompileReport report, compile_model(options, target, [&](const std::string& stage) { progress.begin(stage); }));
  progress.end();
  LockSection section = lock_place(args.model, report.dims, target, args.threads);
  section.pins = pins_of(report);
  section.layouts = report.layouts;
  const auto tuned = std::ranges::count_if(section.pins, [](const Pin& pin) { return pin.tuned; });
  const auto count = static_cast<std::ptrdiff_t>(section.pins.size());
  const std::string what = describe(section);
  lock.put(std::move(section));
  TW_TRY(write_file(path, print(lock)));
  if (console.json) {
    write_json(console, Json::Object{{"lock", path}, {"log", options.schedules.log}, {"kernels", int64_t{count}}, {"tuned", int64_t{tuned}},
                                     {"warnings", json_array(report.warnings)}});
    return kExitOk;
  }
  for (const std::string& warning : report.warnings) progress.print("warning: " + warning + "\n");
  console.out << path << ": " << what << ": " << tuned << " of " << count << " kernels tuned"
              << (options.schedules.log.empty() ? ", without a log" : ", by '" + options.schedules.log + "'") << "\n";
  return kExitOk;
}

}  // namespace

CommandRun define_lock(Flags& flags) {
  auto args = std::make_shared<LockArgs>();
  flags.argument("MODEL", args->model, "The ONNX file");
  flags.text("-t,--target", args->target, "NAME|FILE", "A target's name (tilewright targets) or YAML file; default: this machine");
  flags.text("--log", args->log, "FILE", "The tuning log; default: the user's own, where there is one");
  flags.integer("--threads", args->threads, "Of the log's records those that were measured with so many threads; default 1", 1);
  flags.repeated("--dim", args->dims, "NAME=N", "Bind a free dimension: batch=1, or by input and axis: x[3]=320");
  args->algorithms.define(flags);
  flags.integer("--virtual-threads", args->virtual_threads, "Of devices that hide memory's latency with them; default: what the target says");
  return [args](Console& console) { return lock(*args, console); };
}

}  // namespace tw
