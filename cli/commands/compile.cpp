// tilewright compile: flags to CompileOptions, progress while it works, a summary at the end.
#include <llvm/ADT/StringExtras.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <ostream>

#include "cli/accuracy_flags.h"
#include "cli/algorithm_flags.h"
#include "cli/build_cache.h"
#include "cli/commands/commands.h"
#include "cli/compile_report.h"
#include "cli/default_log.h"
#include "cli/file_roles.h"
#include "cli/given_flags.h"
#include "cli/progress.h"
#include "cli/runner_file.h"
#include "cli/summary.h"
#include "cli/targets.h"
#include "cli/timed_report.h"
#include "cli/tune_flags.h"
#include "cli/tune_text.h"
#include "cli/tune_watch.h"
#include "cli/untrusted.h"
#include "driver/compare/budget_check.h"
#include "driver/compile/compile.h"
#include "driver/compile/dump.h"
#include "driver/report/estimates.h"
#include "driver/report/page.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/predictor_files.h"
#include "driver/tune/tuned_compile.h"
#include "frontend/mapped_file.h"
#include "ir/freestanding.h"
#include "packager/output_file.h"
#include "passes/precision.h"
#include "support/end_signals.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct CompileArgs {
  std::string model, target = "host", output, name, header, weights, emit, dump_dir, log, tune,
                     depfile, budget, junit, report, optimize, precision;
  AccuracyFlags accuracy;
  AlgorithmFlags algorithms;
  UntrustedFlags untrusted;
  GivenFlags given;
  CacheFlags cache;
  RunnerFile runner;
  std::vector<std::string> dims, specialize, passes, print_after;
  int jobs = 0, pass_limit = -1, virtual_threads = 0, threads = 1;
  double report_errors = 0;  // seconds
  bool frozen = false, strict = false, print_changed = false, time_passes = false,
       verify_each = false, freestanding = false;
};

constexpr const char* kNoBudget = "none";
constexpr int kRegistersForSize = 8;  // what a tile takes is unrolled

bool is_text(Emit emit) {
  switch (emit) {
    case Emit::so:
    case Emit::object: return false;
    case Emit::graph:
    case Emit::groups:
    case Emit::kernels:
    case Emit::schedules:
    case Emit::scheduled:
    case Emit::llvm:
    case Emit::assembly: return true;
  }
  TW_UNREACHABLE("bad emit");
}

Error check_name(const std::string& name) {
  bool good = name.empty() || !(name[0] >= '0' && name[0] <= '9');
  for (const char c : name)
    good &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  if (good) return Error::success();
  return make_error(DiagCode::invalid_argument, "--name '{0}' is not a C identifier", name);
}

Error check_passes(const std::vector<std::string>& names, const char* flag) {
  std::vector<Diag> list;
  for (const std::string& name : names) {
    if (find_pass(name) || (name == "all" && std::string_view(flag) == "--print-after")) continue;
    Diag d{DiagCode::invalid_argument,
           std::string(flag) + ": there is no pass '" + name + "'",
           {},
           {}};
    for (const Pass& pass : all_passes())
      d.notes.push_back(std::string(pass.name) + ": " + pass.summary);
    list.push_back(std::move(d));
  }
  return make_error(std::move(list));
}

Error check_report(const CompileArgs& args, const CompileOptions& options) {
  if (args.report.empty())
    return make_error(DiagCode::invalid_argument, "--report-errors needs --report FILE.html");
  if (args.report_errors > 0 && args.target != "host")
    return make_error(DiagCode::unsupported,
                      "--report-errors runs the library here: it is for the target 'host'");
  if (is_text(options.emit))
    return make_error(DiagCode::invalid_argument, "--report is of a library, --emit {0} is a text",
                      args.emit);
  if (!args.tune.empty() && one_shot_from_text(args.tune) != 0)
    return make_error(DiagCode::unsupported,
                      "--report does not go with a --tune that measures: compile once more, with "
                      "the tuning log as --log");
  return check_writable(args.report);
}

// The page of --report.
Error write_report(const CompileArgs& args, const CompileOptions& options,
                   const PlannedProgram& planned, const CompileReport& compiled,
                   const Target& target, const std::optional<AccuracyReport>& accuracy) {
  Report report = make_report(planned, compiled, target);
  report.model = std::filesystem::path(args.model).filename().string();
  const bool here = args.target == "host";
  if (here) add_times(compiled, report);
  else TW_TRY(add_estimates(planned, compiled, target, threads_or_all(args.jobs), report));
  if (here && args.report_errors > 0)
    add_errors(options, target, compiled, args.report_errors, report);
  if (accuracy) add_accuracy(*accuracy, accuracy_note(*accuracy), report);
  return write_file(args.report, page(report));
}

// What an object has not, and what its file is called.
Error check_object(const CompileArgs& args) {
  const std::string ending = std::filesystem::path(args.output).extension().string();
  if (!args.output.empty() && ending != ".o" && ending != ".a")
    return make_error(DiagCode::invalid_argument,
                      "--emit obj writes an object, NAME.o, or a static library, NAME.a; here "
                      "'{0}'",
                      args.output);
  if (!args.weights.empty())
    return make_error(DiagCode::invalid_argument,
                      "--weights is of a library: --emit obj has its weights inside");
  for (const auto& [flag, given] :
       {std::pair("--tune", !args.tune.empty()),
        std::pair("--budget", !args.budget.empty() && args.budget != kNoBudget),
        std::pair("--junit", !args.junit.empty())})
    if (given)
      return make_error(DiagCode::invalid_argument,
                        "{0} runs the library, and --emit obj writes none: {1}", flag,
                        std::string_view(flag) == "--tune"
                            ? "tune with 'tilewright tune', then compile with --log"
                            : "compile once more with --emit so");
  return Error::success();
}

ScheduleOptions schedules_of(const CompileArgs& args) {
  return {args.log, lock_beside(args.model), args.frozen, args.threads,
          args.log.empty() ? default_log() : ""};
}

// Of a library.
std::string output_of(const CompileArgs& args, Emit emit) {
  return args.output.empty() ? std::filesystem::path(args.model).stem().string() +
                                   (emit == Emit::object ? ".o" : ".so")
                             : args.output;
}

Expected<CompileOptions> options_of(const CompileArgs& args) {
  CompileOptions o;
  const std::optional<Emit> emit = emit_from_name(args.emit);
  if (!emit)
    return make_error(DiagCode::invalid_argument, "--emit '{0}' is none of {1}", args.emit,
                      emit_names());
  TW_TRY(check_name(args.name));
  TW_TRY(check_passes(args.passes, "--passes"));
  TW_TRY(check_passes(args.print_after, "--print-after"));
  TW_TRY(parse_dims(args.dims, o.dims, o.limits));
  TW_ASSIGN(o.given, args.given.read());
  TW_ASSIGN(o.specialize, parse_specialize(args.specialize));
  // The closest fit is asked first: add_fast_path
  std::ranges::stable_sort(o.specialize, {}, &std::map<std::string, int64_t>::size);
  o.model = args.model;
  if (args.output == "-" && !is_text(*emit))
    return make_error(
        DiagCode::invalid_argument,
        "-o -: a library goes to a file; only --emit of a text takes standard output");
  if (*emit == Emit::object) TW_TRY(check_object(args));
  o.output = is_text(*emit) ? (args.output == "-" ? "" : args.output) : output_of(args, *emit);
  o.header = args.header;
  o.weights = args.weights;
  o.name = args.name;
  o.emit = *emit;
  o.strict = args.strict;
  o.jobs = args.jobs;
  o.dump_dir = args.dump_dir;
  o.schedules = tuned_schedules(schedules_of(args));
  o.pipeline = args.passes;
  o.passes.verify_each = args.verify_each;
#ifdef TW_VERIFY_EACH
  o.passes.verify_each = true;
#endif
  o.passes.limit = args.pass_limit;
  o.passes.print_after = args.print_after;
  o.passes.print_changed = args.print_changed;
  if (!o.output.empty()) TW_TRY(check_writable(o.output));
  if (!o.header.empty()) TW_TRY(check_writable(o.header));
  for (const std::string& file : {args.weights, args.depfile, args.junit})
    if (!file.empty()) TW_TRY(check_writable(file));
  if (!args.report.empty() || args.report_errors > 0) TW_TRY(check_report(args, o));
  return o;
}

Error check_not_frozen(const CompileArgs& args) {
  return args.frozen ? make_error(DiagCode::invalid_argument,
                                  "--tune finds new schedules, and --frozen takes none but the "
                                  "lock's: one of them")
                     : Error::success();
}

// What --tune asks for.
Expected<TunedCompile> tuned_compile(const CompileArgs& args, const Target& target,
                                     const CompileOptions& options) {
  TW_TRY(check_not_frozen(args));
  if (!target.devices.empty())
    return make_error(
        DiagCode::unsupported,
        "--tune times processors; for device '{0}': tilewright tune, then compile --log",
        target.main_device().name);
  if (is_text(options.emit))
    return make_error(DiagCode::invalid_argument, "--tune is for a library, --emit {0} is a text",
                      args.emit);
  TunedCompile out{options, schedules_of(args), {}};
  TuneRequest& request = out.tuning;
  request.model = args.model;
  request.dims = options.dims;
  request.given = options.given;
  request.network.jobs = threads_or_all(args.jobs);
  request.network.scheduler.batch = 0;  // after the tasks that there are
  if (const std::optional<int> each = one_shot_from_text(args.tune)) {
    request.network.tuner = TunerKind::ranker, request.network.trials_each = *each;
    TW_ASSIGN(request.network.predictors, predictors_for(kBestPredictor, args.target));
    request.sources.generated = true, request.sources.rules = false;
  } else {
    request.network.scheduler.seconds = seconds_from_text(args.tune);
    if (request.network.scheduler.seconds == 0)
      return make_error(DiagCode::invalid_argument,
                        "--tune '{0}': a time, a number above 0 with s, m or h, as in 60s or 10m; "
                        "or one-shot, or one-shot:N",
                        args.tune);
  }
  request.sources.jobs = request.network.jobs;
  request.sources.threads = request.network.threads = args.threads;
  TW_ASSIGN(request.log, tuning_log(args.log));
  out.schedules.log = request.log;
  return out;
}

// Predictors choose, and nothing is measured.
bool only_predicts(const CompileArgs& args) { return one_shot_from_text(args.tune) == 0; }

Error predict(const CompileArgs& args, CompileOptions& options) {
  TW_TRY(check_not_frozen(args));
  ScheduleOptions schedules = schedules_of(args);
  TW_ASSIGN(schedules.predictors, predictors_for(kBestPredictor, args.target));
  options.schedules = tuned_schedules(schedules);
  return Error::success();
}

Expected<FileRoles> files_of(const CompileArgs& args, const CompileOptions& options) {
  FileRoles files;
  files.reads_model(args.model);
  files.reads_target(args.target);
  args.given.reads(files);
  if (args.budget != kNoBudget) files.reads("the budget", args.budget);
  if (!args.tune.empty() && !only_predicts(args)) {
    TW_ASSIGN(const std::string log, tuning_log(args.log));
    files.writes("the tuning log", log);
  } else {
    files.reads("the tuning log", args.log);
    if (args.log.empty()) files.reads("the lock beside the model", lock_beside(args.model));
  }
  if (is_text(options.emit)) {
    files.writes("the text", options.output);
  } else {
    files.writes("the library", options.output);
    files.writes("the header", header_path(options));
    files.writes("the weights", options.weights);
    files.writes("the runner", args.runner.path(options.output));
  }
  files.writes("the report", args.report);
  if (!args.dump_dir.empty())
    for (const DumpStage stage : kDumpStages)
      files.writes("a stage's text", dump_path(args.dump_dir, stage));
  FileRoles all = files;  // no rule makes its own file
  all.writes("the dependencies", args.depfile);
  all.writes("the budget's results", args.junit);
  TW_TRY(all.check());
  return files;
}

// --budget's, else that of the target's description.
Expected<Budget> budget_of(const CompileArgs& args) {
  const bool own = !args.budget.empty();
  const std::string file = own ? args.budget : target_file(args.target, config_dirs());
  if (file.empty() || args.budget == kNoBudget) {
    if (args.junit.empty()) return Budget{};
    return make_error(DiagCode::invalid_argument,
                      "--junit writes what became of a budget, and there is none: --budget FILE, "
                      "or the map 'budget' in the target's YAML file");
  }
  return load_budget(file, own || !args.junit.empty());
}

// One compile, with all that the flags name read.
struct Job {
  const CompileArgs& args;
  CompileOptions options;
  Target target;
  Budget budget;
  std::optional<AccuracyRequest> limit;  // of the accuracy
  std::optional<AccuracyReport> accuracy;
  FileRoles files;
  std::optional<CompileCache> cache;
  std::string key;  // in the cache; "": it is not for the cache
  std::vector<PassTime> passes;
  std::vector<std::string> notes;  // of what was chosen
  PlannedProgram planned;          // for the report
};

// What the target decides where no flag does: without an operating system, nothing loads a library,
// and a microcontroller's flash is small.
Expected<Target> choose_target(CompileArgs& args) {
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  if (!target.wider.empty() && (!args.tune.empty() || !args.report.empty()))
    return make_error(
        DiagCode::unsupported, "{0} is about one processor, and '{1}' is {2}: name one of these",
        args.tune.empty() ? "--report" : "--tune", target.name, llvm::join(target.isa, ", "));
  if (!target.wider.empty() && args.freestanding)
    return make_error(DiagCode::unsupported,
                      "--freestanding: '{0}' is several processors, and an object does not choose",
                      target.name);
  if (args.freestanding) target.triple = freestanding_triple(target.triple);
  if (args.emit.empty()) args.emit = is_freestanding(target.triple) ? "obj" : "so";
  if (args.optimize.empty()) args.optimize = is_microcontroller(target.triple) ? "size" : "speed";
  if (args.optimize != "size" && args.optimize != "speed")
    return make_error(DiagCode::invalid_argument, "--optimize '{0}' is none of speed, size",
                      args.optimize);
  return target;
}

// Weights that are no larger than the model's, and loops whose bodies are small.
void optimize_size(Job& job) {
  AlgorithmOptions& algorithms = job.options.algorithms;
  if (!algorithms.only) algorithms.only = Algorithm::direct;
  algorithms.max_weight_growth = 1;
  job.target.vector_registers = std::min(job.target.vector_registers, kRegistersForSize);
}

// The target's precision, or the flag's, and what is said of auto's choice.
Error choose_precision(Job& job) {
  const CompileArgs& args = job.args;
  if (!args.precision.empty()) {
    const std::optional<Precision> precision = precision_from_name(args.precision);
    if (!precision)
      return make_error(DiagCode::invalid_argument, "--precision '{0}' is none of {1}",
                        args.precision, precision_names());
    if (!args.passes.empty())
      return make_error(DiagCode::invalid_argument,
                        "--precision chooses passes, and --passes gives them: one of them");
    job.target.precision = *precision;
    for (Target& wider : job.target.wider) wider.precision = *precision;
  }
  TW_TRY(check_precision(job.target));
  const Precision precision = precision_of(job.target);
  if (job.target.precision == Precision::automatic)
    job.notes.push_back(std::string("precision auto: ") + precision_name(precision) +
                        " on target '" + job.target.name + "'");
  if (precision == Precision::fp32) return Error::success();
  if (precision == Precision::fp16 || !multiplies_bf16(job.target))
    job.notes.push_back(std::string("precision ") + precision_name(precision) + ": target '" +
                        job.target.name +
                        "' does not multiply it; it keeps weights, where little else is read");
  if (!args.log.empty() || !args.tune.empty() || args.frozen)
    return make_error(DiagCode::unsupported,
                      "precision {0}: its kernels have the default schedules, without --log, "
                      "--tune and --frozen",
                      precision_name(job.target.precision));
  job.options.schedules = nullptr;  // those of the lock beside the model are of f32
  return Error::success();
}

// What cannot be held against a limit of accuracy.
Error check_accuracy(const Job& job) {
  const CompileArgs& args = job.args;
  if (!job.limit) return Error::success();
  if (job.options.emit != Emit::so)
    return make_error(DiagCode::invalid_argument,
                      "--max-error runs the library, and --emit {0} writes none", args.emit);
  if (!args.tune.empty())
    return make_error(DiagCode::unsupported,
                      "a limit of accuracy does not go with --tune: tune with 'tilewright tune', "
                      "then compile with --log");
  if (!job.target.wider.empty())
    return make_error(DiagCode::unsupported,
                      "a limit of accuracy is about one processor, and '{0}' is {1}: name one of "
                      "these",
                      job.target.name, llvm::join(job.target.isa, ", "));
  return Error::success();
}

// Why a build cannot come from the cache; "": it can. Outside of its files are logs, which change
// while they are read, and what devices' own compilers make.
std::string not_cached(const Job& job) {
  const CompileArgs& args = job.args;
  if (!args.tune.empty() || !args.log.empty()) return "--tune and --log take what was measured";
  if (!job.target.devices.empty()) return "the target has a device";
  if (!args.report.empty()) return "--report tells of the compile";
  if (job.limit) return "its accuracy is measured";
  if (!args.weights.empty()) return "--weights writes a third file";
  if (is_text(job.options.emit) || !args.dump_dir.empty() || !args.print_after.empty() ||
      args.print_changed || args.time_passes)
    return "texts are printed on the way";
  return "";
}

std::string words_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + "\n";
  return text;
}

Error find_key(Job& job) {
  const CompileArgs& args = job.args;
  if (args.untrusted.on) return Error::success();
  TW_ASSIGN(job.cache, args.cache.open());
  if (!job.cache || !not_cached(job).empty()) return Error::success();
  FileRoles files;
  files.reads_model(args.model);
  files.reads("the lock beside the model", lock_beside(args.model));
  const auto name_of_file = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  TW_ASSIGN(job.key, build_key(job.target, files,
                               {name_of_file(args.model),
                                args.emit,
                                args.optimize,
                                name_of_file(job.options.output),
                                name_of_file(header_path(job.options)),
                                args.name,
                                words_of(args.dims),
                                job.options.given.forms.yaml,
                                words_of(args.given.values),
                                words_of(args.specialize),
                                words_of(args.passes),
                                args.precision,
                                args.algorithms.algorithm,
                                std::to_string(args.algorithms.accuracy),
                                std::to_string(args.algorithms.max_weight_growth),
                                std::to_string(args.threads),
                                std::to_string(args.virtual_threads),
                                std::to_string(args.pass_limit),
                                std::to_string(args.frozen),
                                std::to_string(args.strict)}));
  return Error::success();
}

Error prepare(Job& job) {
  const CompileArgs& args = job.args;
  TW_ASSIGN(job.options, options_of(args));
  TW_TRY(args.runner.check(job.options, job.target));
  TW_ASSIGN(job.budget, budget_of(args));
  if (job.options.emit == Emit::object && !job.budget.empty()) {
    job.notes.push_back("the budget of target '" + job.target.name +
                        "' is not checked: an object cannot be run here");
    job.budget = {};
  }
  TW_ASSIGN(job.files, files_of(args, job.options));
  TW_ASSIGN(job.options.algorithms, args.algorithms.options(job.target));
  if (args.optimize == "size") optimize_size(job);
  with_virtual_threads(job.target, args.virtual_threads);
  TW_TRY(choose_precision(job));
  if (!is_text(job.options.emit) || !args.accuracy.max_error.empty()) {
    TW_ASSIGN(job.limit, args.accuracy.request(job.budget, args.threads));
  }
  TW_TRY(check_accuracy(job));
  if (only_predicts(args)) TW_TRY(predict(args, job.options));
  return find_key(job);
}

void remove_library(const Job& job) {
  std::error_code none;
  std::filesystem::remove(job.options.output, none);
  std::filesystem::remove(header_path(job.options), none);
  if (!job.options.weights.empty()) std::filesystem::remove(job.options.weights, none);
}

// A library that is over its budget does not stay: no build takes it for a good one.
Expected<std::vector<BudgetRow>> hold_budget(const Job& job, const std::string& library) {
  if (job.budget.empty()) return std::vector<BudgetRow>{};
  BudgetRequest request{library, job.args.model, job.budget, job.args.threads, {}};
  if (job.accuracy && job.accuracy->limit.measure == ErrorMeasure::largest)
    request.error = job.accuracy->error;
  Expected<std::vector<BudgetRow>> rows = check_budget(request);
  if (!rows || !within(*rows)) remove_library(job);
  if (rows && !job.args.junit.empty())
    TW_TRY(write_file(job.args.junit, junit_text(*rows, library)));
  return rows;
}

// Of a limit that cannot be met; the budget's is a case of JUnit.
Error over_limit(const Job& job, const AccuracyReport& accuracy) {
  if (!job.args.junit.empty())
    TW_TRY(write_file(
        job.args.junit,
        junit_text({{Budgeted::error, accuracy.error, accuracy.limit.most}}, job.options.output)));
  return over_accuracy(accuracy);
}

// The library within its accuracy: compiled again where layers lost their choices.
Expected<CompileReport> within_accuracy(Job& job, CompileReport report, const OnStage& stage) {
  if (!job.limit) return report;
  {
    const RemovedOnEndSignal library(job.options.output), header(header_path(job.options)),
        weights(job.options.weights);
    Expected<AccuracyReport> held = hold_accuracy(report, job.options, job.target, *job.limit,
                                                  stage);
    if (!held || !held->within || held->taken_back() > 0) remove_library(job);
    if (!held) return held.takeError();
    if (!held->within) return over_limit(job, *held);
    job.accuracy = std::move(*held);
  }
  if (job.accuracy->taken_back() == 0) return report;
  job.passes.clear();
  return compile_model(job.options, job.target, stage);
}

// The last steps of a library, be it compiled or from the cache.
Expected<int> finish(const Job& job, Json::Object report, const std::string& summary,
                     Console& console) {
  const std::string& library = job.options.output;
  TW_ASSIGN(const std::vector<BudgetRow> rows, hold_budget(job, library));
  if (within(rows)) TW_TRY(job.args.runner.write(library, job.target));
  if (console.json) {
    if (job.accuracy) report.push_back({"accuracy", to_json(*job.accuracy)});
    if (!rows.empty()) report.push_back({"budget", to_json(rows)});
    if (!within(rows)) report.push_back({"ok", false});
    if (job.args.runner.wanted) report.push_back({"runner", job.args.runner.path(library)});
    write_json(console, report);
  } else {
    console.out << summary << job.args.runner.line(library);
    if (job.accuracy) console.out << accuracy_text(*job.accuracy, console.columns);
    if (!rows.empty()) console.out << to_string(rows);
    if (!within(rows)) console.err << "over the budget: " << library << " was removed\n";
  }
  return within(rows) ? kExitOk : kExitBudget;
}

Expected<int> finish_cached(const Job& job, const CachedBuild& build, Console& console) {
  const std::string header = header_path(job.options);
  TW_TRY(write_file(job.options.output, build.library, job.options.emit == Emit::so));
  TW_TRY(write_file(header, build.header));
  if (!console.json) console.err << build.remarks;
  TW_ASSIGN(const Json stored, parse_json(build.report, "the cache's entry " + job.key));
  Json::Object report{{"output", job.options.output}, {"header", header}, {"cached", true}};
  if (stored.object())
    for (const auto& [name, value] : *stored.object())
      if (name != "output" && name != "header") report.push_back({name, value});
  return finish(job, std::move(report),
                job.options.output + ": " + format_bytes(build.library.size()) +
                    ", from the cache\n" + header + "\n",
                console);
}

// A cache that cannot be written is no reason to fail.
Error add_to_cache(const Job& job, const Json::Object& report, const std::string& remarks) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> library, MappedFile::open(job.options.output));
  TW_ASSIGN(const std::shared_ptr<const MappedFile> header,
            MappedFile::open(header_path(job.options)));
  return job.cache->add(
      job.key, {std::string(library->text()), std::string(header->text()), dump(report), remarks});
}

Expected<CompileReport> build(Job& job, Console& console, Progress& progress) {
  const CompileArgs& args = job.args;
  job.options.passes.print = [&](const std::string& title, const std::string& text) {
    progress.print("; " + title + "\n" + text + "\n");
  };
  if (args.time_passes)
    job.options.passes.on_pass = [&](const std::string& pass, double seconds, bool changed,
                                     const std::string& report) {
      job.passes.push_back({pass, report, seconds, changed});
    };
  const OnStage on_stage = [&](const std::string& stage) { progress.begin(stage); };
  if (!args.report.empty())
    job.options.on_planned = [&](const PlannedProgram& p) { job.planned = p; };
  if (args.tune.empty() || only_predicts(args)) {
    TW_ASSIGN(CompileReport report, compile_model(job.options, job.target, on_stage));
    return within_accuracy(job, std::move(report), on_stage);
  }
  TW_ASSIGN(TunedCompile request, tuned_compile(args, job.target, job.options));
  const double limit = request.tuning.network.scheduler.seconds;
  ConsoleTuneWatch watch(console, request.tuning.network.scheduler.trials, true);
  TW_ASSIGN(TunedCompileReport tuned, compile_tuned(std::move(request), job.target, watch));
  std::ranges::copy(tuning_notes(tuned, limit), std::back_inserter(tuned.report.notes));
  return std::move(tuned.report);
}

// With --untrusted the rest of the command is another process.
Expected<Confined> confined_compile(const CompileArgs& args, Console& console) {
  if (!args.untrusted.on) return Confined();
  if (!(args.log + args.tune + args.cache.folder).empty())
    return make_error(DiagCode::unsupported,
                      "--untrusted does not go with --log, --tune and --cache: a stranger's model "
                      "must not write what other compiles take");
  const std::string budget = args.budget == kNoBudget ? "" : args.budget;
  return confined(args.untrusted,
                  {folder_of(args.model), target_file(args.target, config_dirs()), budget,
                   args.given.file(), args.accuracy.data},
                  {args.output.empty() ? "." : folder_of(args.output), folder_of(args.header),
                   folder_of(args.weights), folder_of(args.report), folder_of(args.depfile),
                   folder_of(args.junit), args.dump_dir},
                  console);
}

Expected<int> compile(CompileArgs args, Console& console) {
  TW_ASSIGN(const Confined work, confined_compile(args, console));
  if (work.code) return *work.code;
  TW_ASSIGN(Target target, choose_target(args));
  Job job{args, {}, std::move(target), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  TW_TRY(prepare(job));
  const auto start = std::chrono::steady_clock::now();
  if (!args.depfile.empty()) TW_TRY(write_file(args.depfile, job.files.dependencies()));
  if (!job.key.empty())
    if (const std::optional<CachedBuild> build = job.cache->find(job.key))
      return finish_cached(job, *build, console);
  Progress progress(console);
  TW_ASSIGN(CompileReport report, build(job, console, progress));
  if (!args.report.empty() && !(args.strict && !report.faults.empty())) {
    progress.begin("report");
    TW_TRY(write_report(args, job.options, job.planned, report, job.target, job.accuracy));
  }
  progress.end();
  std::ranges::copy(job.notes, std::back_inserter(report.notes));
  if (job.cache && job.key.empty()) report.notes.push_back("not cached: " + not_cached(job));
  if (!console.json) progress.print(remarks(report));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Json::Object json = to_json(report, job.passes, seconds);
  if (args.strict && !report.faults.empty()) {
    if (console.json) write_json(console, json);
    return kExitInternal;
  }
  if (!job.passes.empty() && !console.json) progress.print(pass_table(job.passes));
  if (is_text(job.options.emit)) {
    const std::string& output = job.options.output;  // empty: standard output
    if (!output.empty()) TW_TRY(write_file(output, report.text));
    else if (console.json)
      write_json(console, Json::Object{{"emit", args.emit}, {"text", report.text}});
    else console.out << report.text;
    return kExitOk;
  }
  if (!job.key.empty())
    if (Error error = add_to_cache(job, json, remarks(report)))
      progress.print("warning: " + error_text(std::move(error)) + "\n");
  return finish(job, json, summary_text(report, seconds, !args.tune.empty(), console.columns),
                console);
}

void define_build_flags(Flags& flags, CompileArgs& args) {
  flags.text("--depfile", args.depfile, "FILE",
             "Write a rule of make there: the files that were written, and those that were read");
  flags.text("--budget", args.budget, "FILE",
             "Fail with 7, and leave no library, where it needs more than the map 'budget' of this "
             "YAML file allows; default: the target's; none: whatever it needs");
  args.cache.define(flags);
  flags.text("--junit", args.junit, "FILE", "Write what became of the budget there, as JUnit");
}

void define_goal_flags(Flags& flags, CompileArgs& args) {
  flags.text(
      "--optimize", args.optimize, "GOAL",
      "speed (default), or size: weights as large as the model's and small code (default for "
      "microcontrollers)");
  flags.flag("--freestanding", args.freestanding,
             "An object that needs no operating system: neither threads nor memory besides the "
             "caller's. It has the target's features without asking for them");
}

void define_report_flags(Flags& flags, CompileArgs& args) {
  flags.text("--report", args.report, "FILE.html",
             "A page of the kernels with their schedules and memory; for target host with their "
             "times on this machine, on one thread");
  flags.number("--report-errors", args.report_errors, "S",
               "On the page of --report also how far each kernel's result is from the reference "
               "evaluator's, as far as S seconds allow; default 0: not");
}

void define_schedule_flags(Flags& flags, CompileArgs& args) {
  flags.text("--log", args.log, "FILE",
             "Take schedules from this tuning log; default: from the tilewright.lock beside the "
             "model, where it is there");
  flags.text(
      "--tune", args.tune, "TIME|one-shot[:N]",
      "Tune the kernels, and use what was found if the whole network is faster with it: all "
      "that takes 60s, 10m, 1h beside the compile. one-shot: a predictor chooses and nothing "
      "is measured, or N of its candidates for each kernel are");
  flags.integer("--threads", args.threads,
                "Of the log's records those that were measured with so many threads; default 1", 1);
  flags.flag("--frozen", args.frozen,
             "Refuse to compile what the lock beside the model does not pin");
}

void define_pass_flags(Flags& flags, CompileArgs& args) {
  flags.comma_list("--passes", args.passes, "P,P",
                   "Run these graph passes instead of the default ones");
  flags.comma_list("--print-after", args.print_after, "P,P",
                   "Print the graph after these passes, or after 'all'");
  flags.flag("--print-changed", args.print_changed,
             "Print the graph after every pass that changed it");
  flags.flag("--time-passes", args.time_passes, "Print every pass's time");
  flags.integer("--pass-limit", args.pass_limit, "Stop after N passes: bisects a wrong one");
  flags.flag("--verify-each", args.verify_each, "Check the graph after every pass");
}

}  // namespace

CommandRun define_compile(Flags& flags) {
  auto args = std::make_shared<CompileArgs>();
  flags.argument("MODEL", args->model, "The ONNX file");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "A target's name (tilewright targets) or YAML file; default: this machine");
  flags.text("-o,--output", args->output, "FILE",
             "The library; default: the model's name with .so, here; of --emit obj the object, .o, "
             "or static library, .a");
  flags.text("--header", args->header, "FILE", "The C header; default: the library's name with .h");
  flags.text(
      "--weights", args->weights, "FILE",
      "The weights, in a file of their own; default: inside the library. A program finds them "
      "beside the library, or where tw_options.weights says");
  args->runner.define(flags);
  define_build_flags(flags, *args);
  flags.text("--name", args->name, "ID",
             "C identifier of the model: the library exports tw_ID_query; default: the library's "
             "file name without its ending");
  flags.repeated(
      "--dim", args->dims, "NAME=N|NAME=A..B[/S]",
      "Bind a free dimension, or say what it may be: batch=1, seq=1..512, multiples of 32 "
      "H=32..960/32, or by input and axis: x[3]=320");
  args->given.define(flags);
  flags.repeated(
      "--specialize", args->specialize, "NAME=N[,NAME=N]",
      "Calls of their own for these sizes of free dimensions, taken while running when they fit");
  flags.text("--emit", args->emit, "STAGE",
             std::string(
                 "so: a shared library (default); obj: an object or a static library to link; else "
                 "stop there and write its text (to -o; none, or -: standard output): ") +
                 emit_names());
  define_goal_flags(flags, *args);
  flags.text("--dump-dir", args->dump_dir, "DIR",
             "Write every stage's text there as numbered files");
  define_report_flags(flags, *args);
  args->algorithms.define(flags);
  args->accuracy.define(flags);
  flags.text("--precision", args->precision, "P",
             "fp32; bf16: products and convolutions multiply it where the target has an "
             "instruction for that, with sums in f32; fp16, and bf16 without one: weights are kept "
             "in it; auto: bf16 with an instruction, else fp32; default: the target's, else fp32");
  define_schedule_flags(flags, *args);
  flags.flag("--strict", args->strict,
             "Write nothing and exit with 70 where a default schedule does not apply, which is a "
             "bug; else the plain one is used, with a warning");
  flags.integer(
      "--virtual-threads", args->virtual_threads,
      "Of devices that hide memory's latency with them; 1: none; default: what the target says");
  args->untrusted.define(flags);
  flags.integer("-j,--jobs", args->jobs, "Kernels compiled at once; 0: one a processor");
  define_pass_flags(flags, *args);
  return [args](Console& console) { return compile(*args, console); };
}

}  // namespace tw
