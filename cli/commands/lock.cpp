// tilewright lock: writes the choices that compile would make for every kernel of a model into
// tilewright.lock beside it.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <ostream>

#include "cli/accuracy_flags.h"
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
#include "driver/tune/predictor_files.h"
#include "driver/tune/tuned_schedules.h"
#include "packager/output_file.h"

namespace tw {
namespace {

struct LockArgs {
  std::string model, target = "host", log;
  AlgorithmFlags algorithms;
  GivenFlags given;
  AccuracyFlags accuracy;
  PrecisionFlag precision;
  RoundingFlag rounding;
  std::vector<std::string> dims, specialize;
  int threads = 1, virtual_threads = 0;
};

// --log, else the user's log if it exists
std::string log_to_read(const LockArgs& args) {
  std::error_code none;
  const std::string own = default_log();
  return !args.log.empty() || own.empty() || !std::filesystem::exists(own, none) ? args.log : own;
}

class Locking {
 public:
  Locking(const LockArgs& args, Console& console)
      : args_(args), progress_(console), path_(lock_beside(args.model)) {}

  Expected<int> run(Console& console) {
    TW_TRY(prepare());
    TW_ASSIGN(Lock lock, read_lock(path_));
    if (lock.outdated)
      warnings_.push_back(
          "'" + path_ +
          "' was of another version of the schedule language: what it pinned is gone");
    lock.outdated = false;
    TW_TRY(hold_to_limit());
    TW_TRY(add_section(options_));
    for (const auto& sizes : options_.specialize) {  // as in compile: each is a model of its own
      CompileOptions own = options_;
      own.dims = with_sizes(options_.dims, sizes);
      TW_TRY(add_section(own));
    }
    progress_.end();
    for (const LockSection& section : sections_) lock.set_section(section);
    TW_TRY(files_.models_are_unchanged());
    TW_TRY(write_file(path_, print(lock)));
    show(console);
    return kExitOk;
  }

 private:
  // Reads the flags.
  Error prepare() {
    options_.model = args_.model;
    options_.emit = Emit::scheduled;
    TW_TRY(parse_dims(args_.dims, options_.dims, options_.limits));
    TW_ASSIGN(options_.given, args_.given.read());
    TW_ASSIGN(options_.specialize, parse_specialize(args_.specialize));
    TW_ASSIGN(target_, load_target(args_.target, config_dirs()));
    TW_TRY(args_.precision.apply(target_));
    TW_ASSIGN(options_.rounding, args_.rounding.read());
    TW_ASSIGN(options_.algorithms, args_.algorithms.options(target_));
    with_virtual_threads(target_, args_.virtual_threads);
    log_ = log_to_read(args_);
    ScheduleOptions schedules{.log = log_, .threads = args_.threads};
    if (target_.predicted_schedules) {
      TW_ASSIGN(schedules.predictors, predictors_for(kBestPredictor, args_.target));
    }
    options_.schedules = tuned_schedules(schedules);
    TW_ASSIGN(limit_, limit());
    files_.reads_model(args_.model);
    files_.reads_target(args_.target);
    args_.given.reads(files_);
    files_.reads("the tuning log", log_);
    files_.writes("the lock", path_);
    return files_.check();
  }

  // The limit of a compile: from the flag, else from the target's budget
  Expected<std::optional<AccuracyRequest>> limit() const {
    const std::string file = target_file(args_.target, config_dirs());
    Budget budget;
    if (!file.empty()) { TW_ASSIGN(budget, load_budget(file, false)); }
    TW_ASSIGN(std::optional<AccuracyRequest> request,
              args_.accuracy.request(budget, args_.threads));
    if (request) TW_TRY(check_limited(target_));
    return request;
  }

  // The choices of a compile, which ends before it makes code
  Expected<CompileReport> chosen(const CompileOptions& options) {
    return compile_model(options, target_,
                         [&](const std::string& stage) { progress_.begin(stage); });
  }

  // Adds the layers that the limit takes back to the options.
  Error hold_to_limit() {
    if (!limit_) return Error::success();
    TW_ASSIGN(const CompileReport all, chosen(options_));
    TW_ASSIGN(accuracy_, hold_accuracy(all, options_, target_, *limit_,
                                       [&](const std::string& stage) { progress_.begin(stage); }));
    return accuracy_->within ? Error::success() : over_accuracy(*accuracy_);
  }

  Error add_section(CompileOptions options) {
    options.specialize.clear();
    TW_ASSIGN(const CompileReport report, chosen(options));
    std::ranges::copy(report.warnings, std::back_inserter(warnings_));
    sections_.push_back(lock_section(options, target_, args_.threads, report));
    return Error::success();
  }

  void show(Console& console) {
    int64_t tuned = 0, count = 0;
    std::string what;
    for (const LockSection& section : sections_) {
      const int64_t own = tuned_of(section), all = std::ssize(section.pins);
      what += path_ + ": " + describe(section) + ": " + std::to_string(own) + " of " +
              std::to_string(all) + " kernels tuned" +
              (log_.empty() ? ", without a log" : ", by '" + log_ + "'") +
              (section.exact.empty()
                   ? ""
                   : "; layers that stay exact: " + std::to_string(section.exact.size())) +
              "\n";
      tuned += own;
      count += all;
    }
    if (console.json) {
      Json::Object json{{"lock", path_},
                        {"log", log_},
                        {"kernels", count},
                        {"tuned", tuned},
                        {"warnings", json_array(warnings_)}};
      if (accuracy_) json.push_back({"accuracy", to_json(*accuracy_)});
      write_json(console, json);
      return;
    }
    for (const std::string& warning : warnings_) progress_.print("warning: " + warning + "\n");
    console.out << what;
    if (accuracy_) console.out << accuracy_text(*accuracy_, console.columns);
  }

  static int64_t tuned_of(const LockSection& section) {
    return std::ranges::count_if(section.pins, [](const Pin& pin) { return pin.tuned; });
  }

  const LockArgs& args_;
  Progress progress_;
  std::string path_, log_;
  FileRoles files_;
  CompileOptions options_;
  Target target_;
  std::optional<AccuracyRequest> limit_;
  std::optional<AccuracyReport> accuracy_;
  std::vector<std::string> warnings_;
  std::vector<LockSection> sections_;
};

}  // namespace

CommandRun define_lock(Flags& flags) {
  auto args = std::make_shared<LockArgs>();
  flags.argument("MODEL", args->model, "The ONNX file");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "A target's name (tilewright targets) or YAML file; default: this machine");
  flags.text("--log", args->log, "FILE",
             "The tuning log; default: the user's own, where there is one");
  flags.integer("--threads", args->threads,
                "Take the records of the log that were measured on so many threads; default 1", 1);
  flags.repeated("--dim", args->dims, "NAME=N|NAME=A..B[/S]",
                 "As of compile: batch=1, by input and axis x[3]=320, seq=1..512");
  args->given.define(flags);
  flags.repeated("--specialize", args->specialize, "NAME=N[,NAME=N]",
                 "As of compile: the calls for these sizes are pinned, too");
  args->precision.define(flags);
  args->rounding.define(flags);
  args->algorithms.define(flags);
  flags.text("--max-error", args->accuracy.max_error, "X",
             "Also pin which layers stay exact, so that outputs are within this limit: 1e-3, "
             "rms:0.02 or top1:99%, as of compile; default: the error of the target's budget");
  flags.text("--accuracy-data", args->accuracy.data, "DIR",
             "What --max-error is measured on, as of compile; default: seeded inputs");
  flags.integer("--samples", args->accuracy.samples,
                "Of --accuracy-data no more than the first so many", 1);
  flags.integer("--virtual-threads", args->virtual_threads,
                "Of devices that hide memory's latency with them; default: what the target says");
  return [args](Console& console) { return Locking(*args, console).run(console); };
}

}  // namespace tw
