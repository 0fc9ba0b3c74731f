// tilewright compile: chooses target, files, budget and precision before the work begins.
#include "cli/commands/compile/job.h"

#include <llvm/ADT/StringExtras.h>

#include <algorithm>

#include "cli/default_log.h"
#include "cli/flags.h"
#include "cli/targets.h"
#include "cli/tune_flags.h"
#include "driver/accuracy/samples.h"
#include "driver/compile/dump.h"
#include "driver/run/library_runs.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/predictor_files.h"
#include "ir/freestanding.h"
#include "packager/runner.h"
#include "passes/precision.h"
#include "support/parallel.h"

namespace tw {
namespace {

Error check_not_frozen(const CompileArgs& args) {
  return args.frozen ? make_error(DiagCode::invalid_argument,
                                  "--tune finds new schedules, and --frozen takes none but the "
                                  "lock's: one of them")
                     : Error::success();
}

// The tuner that --tuner names, else the usual one. predicted: it must be a predictor.
Expected<const Tuner*> tuner_of(const CompileArgs& args, const char* usual, bool predicted) {
  const Tuner* tuner = tuner_named(args.tuner.empty() ? usual : args.tuner);
  if (tuner && (tuner->predicted || !predicted)) return tuner;
  std::vector<std::string> names;
  for (const Tuner& other : tuners())
    if (other.predicted || !predicted) names.emplace_back(other.name);
  return wrong_word("--tuner", args.tuner, llvm::join(names, ", "));
}

Error predict(const CompileArgs& args, CompileOptions& options) {
  TW_TRY(check_not_frozen(args));
  ScheduleOptions schedules = schedules_of(args);
  TW_ASSIGN(const Tuner* tuner, tuner_of(args, kBestPredictor, true));
  TW_ASSIGN(schedules.predictors, predictors_for(tuner->name, args.target));
  if (!schedules.predictors->states_spread())
    return make_error(DiagCode::invalid_argument,
                      "--tuner {0}: it does not say how sure it is, so its choices must be "
                      "measured beside the default: --tune one-shot:16",
                      tuner->name);
  if (args.without_rules) schedules.caution = kCautionWithoutRules;
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
  FileRoles all = files;  // a rule does not make its own file
  all.writes("the dependencies", args.depfile);
  all.writes("the budget's results", args.junit);
  TW_TRY(all.check());
  return files;
}

// The budget of --budget, else of the target's description
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

constexpr int kRegistersForSize = 8;  // few, as loops over a tile are unrolled

// Chooses weights that are no larger than the model's, and loops with small bodies.
void optimize_size(Job& job) {
  AlgorithmOptions& algorithms = job.options.algorithms;
  if (!algorithms.only) algorithms.only = Algorithm::direct;
  algorithms.max_weight_growth = 1;
  job.target.vector_registers = std::min(job.target.vector_registers, kRegistersForSize);
}

// Sets the precision of the flag, or keeps the target's, with notes about it.
Error choose_precision(Job& job) {
  const CompileArgs& args = job.args;
  if (!args.precision.name.empty() && !args.passes.empty())
    return make_error(DiagCode::invalid_argument,
                      "--precision chooses passes, and --passes gives them: one of them");
  TW_TRY(args.precision.apply(job.target));
  std::ranges::move(precision_notes(job.target), std::back_inserter(job.notes));
  return Error::success();
}

// Refuses limits of the budget for which this machine cannot make the run.
Error check_budget_runs(const Job& job) {
  const bool here = job.target.arch() == host_target().arch();
  for (const BudgetLimit& limit : job.budget) {
    if (limit.what == Budgeted::cycles && job.target.devices.empty())
      return make_error(DiagCode::unsupported,
                        "the budget has cycles, and no device of target '{0}' counts them: leave "
                        "them out, or --budget none",
                        job.target.name);
    if (!here && (limit.what == Budgeted::cycles || limit.what == Budgeted::p50_ms))
      return make_error(DiagCode::unsupported,
                        "the budget's {0} is measured by a run on this machine, which does not run "
                        "what is compiled for '{1}': leave it out, or --budget none",
                        name_of(limit.what).name, job.target.name);
  }
  return Error::success();
}

// Refuses compiles that cannot be held against a limit of accuracy.
Error check_accuracy(const Job& job) {
  const CompileArgs& args = job.args;
  if (!job.limit) return Error::success();
  if (is_text(job.options.emit))
    return make_error(DiagCode::invalid_argument,
                      "--max-error runs code, and --emit {0} writes a text", args.emit);
  if (!args.tune.empty())
    return make_error(DiagCode::unsupported,
                      "a limit of accuracy does not go with --tune: tune with 'tilewright tune', "
                      "then compile with --log");
  if (args.frozen && args.accuracy.layers)
    return make_error(DiagCode::invalid_argument,
                      "--layers compiles the model once for each layer, and --frozen only what the "
                      "lock pins: one of them");
  return check_limited(job.target);
}

// Default tolerances. Short floats round more than the model asks for.
constexpr double kShortFloats = 0.05, kUsual = 1e-4;
double verify_tolerance(const Job& job) {
  if (job.args.verify.tolerance > 0) return job.args.verify.tolerance;
  if (job.limit && job.limit->limit.measure == ErrorMeasure::largest) return job.limit->limit.most;
  return precision_of(job.target) == Precision::fp32 ? kUsual : kShortFloats;
}

Error prepare_verify(Job& job) {
  const VerifyFlags& verify = job.args.verify;
  if (!verify.on) return Error::success();
  if (job.args.untrusted.on && (!verify.place.empty() || !runs_here(job.target)))
    return make_error(DiagCode::unsupported,
                      "--untrusted starts no programs, and --verify needs one to run what is "
                      "compiled for '{0}': verify in a second command",
                      job.target.name);
  TW_TRY(LibraryRuns::check(job.target, {verify.place, job.args.threads}));
  job.options.verified = {"", verify_tolerance(job)};
  if (!verify.data.empty()) { TW_ASSIGN(job.options.verified->data, data_hash(verify.data)); }
  return Error::success();
}

// Reads the samples before the minutes that a compile may take: samples that the model does not
// take are refused early.
Error check_data(const Job& job) {
  std::vector<std::string> folders{job.args.verify.data};
  if (job.limit) folders.push_back(job.limit->data);
  std::erase(folders, "");
  if (folders.empty()) return Error::success();
  TW_ASSIGN(const Model model, import_model(job.options));
  for (const std::string& data : folders)
    TW_TRY(
        samples_for({data, 0, job.options.given.forms, {}}, input_specs(model.graph)).takeError());
  return Error::success();
}

// Stages the files that are written: at the end they take their places all together.
Error stage_files(Job& job) {
  const CompileArgs& args = job.args;
  CompileOptions& o = job.options;
  if (!args.depfile.empty()) { TW_ASSIGN(job.dependencies, job.files.dependencies()); }
  if (args.runner.wanted) { TW_ASSIGN(job.runner_program, link_runner(job.target.triple)); }
  job.places = {o.output, is_text(o.emit) ? "" : header_path(o), args.runner.path(o.output)};
  TW_ASSIGN(o.output, job.staged.stage(job.places.library));
  TW_ASSIGN(o.header, job.staged.stage(job.places.header));
  TW_ASSIGN(o.weights, job.staged.stage(o.weights));
  TW_ASSIGN(job.runner, job.staged.stage(job.places.runner));
  TW_ASSIGN(job.report, job.staged.stage(args.report));
  TW_ASSIGN(job.depfile, job.staged.stage(args.depfile));
  return Error::success();
}

}  // namespace

// The compile that --tune asks for
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
  request.rounding = options.rounding;
  request.network.jobs = threads_or_all(args.jobs);
  request.network.scheduler.batch = 0;  // by the number of tasks
  if (const std::optional<int> each = one_shot_from_text(args.tune)) {
    TW_ASSIGN(request.network.tuner, tuner_of(args, kBestPredictor, true));
    request.network.trials_each = *each;
    request.space.rules = false;
  } else {
    TW_ASSIGN(request.network.tuner, tuner_of(args, request.network.tuner->name, false));
    request.network.scheduler.seconds = seconds_from_text(args.tune);
    if (request.network.scheduler.seconds == 0)
      return make_error(DiagCode::invalid_argument,
                        "--tune '{0}': a time, a number above 0 with s, m or h, as in 60s or 10m; "
                        "or one-shot, or one-shot:N",
                        args.tune);
  }
  if (request.network.tuner->predicted) {
    TW_ASSIGN(request.network.predictors, predictors_for(request.network.tuner->name, args.target));
  }
  request.network.threads = args.threads;
  TW_ASSIGN(request.log, tuning_log(args.log));
  out.schedules.log = request.log;
  return out;
}

bool only_predicts(const CompileArgs& args) {
  return args.predicted || one_shot_from_text(args.tune) == 0;
}

// Loads the target, which decides where no flag does: without an operating system nothing loads a
// library, and a microcontroller's flash is small.
Expected<Target> choose_target(CompileArgs& args) {
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  args.without_rules = target.predicted_schedules;
  args.predicted = args.without_rules && target.wider.empty() && args.tune.empty() &&
                   !args.frozen && !args.untrusted.on;
  if (args.tune == kNoTuning) args.tune.clear();
  if (!args.tuner.empty() && args.tune.empty() && !args.predicted)
    return make_error(DiagCode::invalid_argument,
                      "--tuner says how --tune chooses, and nothing is tuned here: add --tune");
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
    return wrong_word("--optimize", args.optimize, "speed, size");
  return target;
}

Error prepare_job(Job& job) {
  const CompileArgs& args = job.args;
  TW_ASSIGN(job.options, options_of(args));
  TW_TRY(args.runner.check(job.options, job.target));
  TW_ASSIGN(job.budget, budget_of(args));
  if (job.options.emit == Emit::object && !job.budget.empty()) {
    job.notes.push_back("the budget of target '" + job.target.name +
                        "' is not checked: an object cannot be run here");
    job.budget = {};
  }
  TW_TRY(check_budget_runs(job));
  TW_ASSIGN(job.files, files_of(args, job.options));
  TW_ASSIGN(job.options.algorithms, args.algorithms.options(job.target));
  if (args.optimize == "size") optimize_size(job);
  with_virtual_threads(job.target, args.virtual_threads);
  TW_TRY(choose_precision(job));
  if (!is_text(job.options.emit) || !args.accuracy.max_error.empty()) {
    TW_ASSIGN(job.limit, args.accuracy.request(job.budget, args.threads));
    if (job.limit) job.limit->frozen = args.frozen;
  }
  TW_TRY(check_accuracy(job));
  TW_TRY(prepare_verify(job));
  TW_TRY(check_data(job));
  if (only_predicts(args)) TW_TRY(predict(args, job.options));
  else if (!args.tune.empty()) TW_TRY(tuned_compile(args, job.target, job.options).takeError());
  TW_TRY(find_build_key(job));
  return stage_files(job);
}

}  // namespace tw
