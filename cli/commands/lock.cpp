// tilewright lock: what compile would choose now for every kernel of a model, written into
// tilewright.lock beside it.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <ostream>

#include "cli/algorithm_flags.h"
#include "cli/commands/commands.h"
#include "cli/commands/precision_flag.h"
#include "cli/default_log.h"
#include "cli/file_roles.h"
#include "cli/given_flags.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "driver/compile/compile.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/tuned_schedules.h"
#include "packager/output_file.h"

namespace tw {
namespace {

struct LockArgs {
  std::string model, target = "host", log;
  AlgorithmFlags algorithms;
  GivenFlags given;
  PrecisionFlag precision;
  std::vector<std::string> dims, specialize;
  int threads = 1, virtual_threads = 0;
};

// --log, else the user's log where there is one.
std::string log_to_read(const LockArgs& args) {
  std::error_code none;
  const std::string own = default_log();
  return !args.log.empty() || own.empty() || !std::filesystem::exists(own, none) ? args.log : own;
}

// What a compile would choose now; it is not finished, as no code is needed.
Expected<LockSection> section_of(const CompileOptions& options, const Target& target, int threads,
                                 Progress& progress, std::vector<std::string>& warnings) {
  TW_ASSIGN(
      const CompileReport report,
      compile_model(options, target, [&](const std::string& stage) { progress.begin(stage); }));
  progress.end();
  std::ranges::copy(report.warnings, std::back_inserter(warnings));
  return lock_section(options, target, threads, report);
}

int64_t tuned_of(const LockSection& section) {
  return std::ranges::count_if(section.pins, [](const Pin& pin) { return pin.tuned; });
}

Expected<int> lock(const LockArgs& args, Console& console) {
  CompileOptions options;
  options.model = args.model;
  options.emit = Emit::scheduled;
  TW_TRY(parse_dims(args.dims, options.dims, options.limits));
  TW_ASSIGN(options.given, args.given.read());
  TW_ASSIGN(const auto special, parse_specialize(args.specialize));
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  TW_TRY(args.precision.apply(target));
  TW_ASSIGN(options.algorithms, args.algorithms.options(target));
  with_virtual_threads(target, args.virtual_threads);
  const ScheduleOptions schedules{.log = log_to_read(args), .threads = args.threads};
  options.schedules = tuned_schedules(schedules);
  const std::string path = lock_beside(args.model);
  FileRoles files;
  files.reads_model(args.model);
  files.reads_target(args.target);
  args.given.reads(files);
  files.reads("the tuning log", schedules.log);
  files.writes("the lock", path);
  TW_TRY(files.check());
  TW_ASSIGN(Lock lock, read_lock(path));
  Progress progress(console);
  std::vector<std::string> warnings;
  if (lock.outdated)
    warnings.push_back("'" + path +
                       "' was of another version of tilewright: what it pinned is gone");
  lock.outdated = false;
  std::vector<LockSection> sections;
  TW_ASSIGN(sections.emplace_back(), section_of(options, target, args.threads, progress, warnings));
  for (const auto& sizes : special) {  // as compile makes them: models of their own
    CompileOptions own = options;
    own.dims = with_sizes(options.dims, sizes);
    TW_ASSIGN(sections.emplace_back(), section_of(own, target, args.threads, progress, warnings));
  }
  int64_t tuned = 0, count = 0;
  std::string what;
  for (const LockSection& section : sections) {
    const auto own = static_cast<int64_t>(section.pins.size());
    what += path + ": " + describe(section) + ": " + std::to_string(tuned_of(section)) + " of " +
            std::to_string(own) + " kernels tuned" +
            (schedules.log.empty() ? ", without a log" : ", by '" + schedules.log + "'") + "\n";
    tuned += tuned_of(section);
    count += own;
    lock.set_section(section);
  }
  TW_TRY(write_file(path, print(lock)));
  if (console.json) {
    write_json(console, Json::Object{{"lock", path},
                                     {"log", schedules.log},
                                     {"kernels", count},
                                     {"tuned", tuned},
                                     {"warnings", json_array(warnings)}});
    return kExitOk;
  }
  for (const std::string& warning : warnings) progress.print("warning: " + warning + "\n");
  console.out << what;
  return kExitOk;
}

}  // namespace

CommandRun define_lock(Flags& flags) {
  auto args = std::make_shared<LockArgs>();
  flags.argument("MODEL", args->model, "The ONNX file");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "A target's name (tilewright targets) or YAML file; default: this machine");
  flags.text("--log", args->log, "FILE",
             "The tuning log; default: the user's own, where there is one");
  flags.integer("--threads", args->threads,
                "Of the log's records those that were measured with so many threads; default 1", 1);
  flags.repeated("--dim", args->dims, "NAME=N|NAME=A..B[/S]",
                 "As of compile: batch=1, by input and axis x[3]=320, seq=1..512");
  args->given.define(flags);
  flags.repeated("--specialize", args->specialize, "NAME=N[,NAME=N]",
                 "As of compile: the calls for these sizes are pinned, too");
  args->precision.define(flags);
  args->algorithms.define(flags);
  flags.integer("--virtual-threads", args->virtual_threads,
                "Of devices that hide memory's latency with them; default: what the target says");
  return [args](Console& console) { return lock(*args, console); };
}

}  // namespace tw
