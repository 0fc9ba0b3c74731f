// tilewright tune: tunes a network's kernels on this machine, and keeps the results in the log.
#include <llvm/ADT/StringExtras.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/accuracy_flags.h"
#include "cli/commands/commands.h"
#include "cli/commands/precision_flag.h"
#include "cli/file_roles.h"
#include "cli/flags.h"
#include "cli/given_flags.h"
#include "cli/interrupts.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/tune_flags.h"
#include "cli/tune_text.h"
#include "cli/tune_watch.h"
#include "driver/report/page.h"
#include "driver/run/compiled_network.h"
#include "driver/tune/network_proof.h"
#include "driver/tune/tuned_compile.h"
#include "packager/output_file.h"
#include "passes/precision.h"
#include "support/names_text.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct TuneArgs {
  std::string worker;
  std::string model, target = "host", tuner = "gbt", space = "all", objective = "rank",
                     features = "loops", log, time, until, report;
  std::vector<std::string> dims;
  GivenFlags given;
  AccuracyFlags accuracy;
  PrecisionFlag precision;
  RoundingFlag rounding;
  bool no_rules = false, no_transfer = false, prove = false, table = false, no_prove = false;
  int trials = 0, jobs = 0, batch = 0, patience = 0, threads = 1, kernel = 0, check = 0;
  std::optional<uint64_t> seed;
};

// "10m" -> 600
Expected<double> seconds_from(const std::string& text) {
  if (text.empty()) return 0;
  if (const double seconds = seconds_from_text(text); seconds > 0) return seconds;
  return make_error(DiagCode::invalid_argument,
                    "--time '{0}': a number above 0 with s, m or h, as in 90s or 10m", text);
}

// "2%" -> 0.02
Expected<double> share_from(const std::string& text) {
  if (text.empty()) return 0;
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {}
  if (value > 0 && value < 100 && text.substr(end) == "%") return value / 100;
  return make_error(DiagCode::invalid_argument, "--until '{0}': above 0% and below 100%, as in 2%",
                    text);
}

Expected<NetworkOptions> options_of(const TuneArgs& args) {
  NetworkOptions o;
  const auto name_of = [](const auto& row) { return row.name; };
  o.tuner = tuner_named(args.tuner);
  if (!o.tuner) return wrong_word("--tuner", args.tuner, names_text(tuners(), name_of));
  o.features = features_named(args.features);
  if (!o.features)
    return wrong_word("--features", args.features, names_text(feature_sets(), name_of));
  if (args.objective != "rank" && args.objective != "regression")
    return wrong_word("--objective", args.objective, "rank, regression");
  if (!sketch_source_from_name(args.space))
    return wrong_word("--space", args.space, llvm::join(kSketchSources, ", "));
  o.objective = args.objective == "rank" ? Objective::rank : Objective::regression;
  o.transfer = !args.no_transfer;
  o.patience = args.patience;
  o.seed = args.seed.value_or(1);
  o.jobs = threads_or_all(args.jobs);
  o.threads = args.threads;
  o.table = args.table;
  o.scheduler.trials = args.trials;
  o.scheduler.batch = args.batch;
  TW_ASSIGN(o.scheduler.seconds, seconds_from(args.time));
  TW_ASSIGN(o.scheduler.until, share_from(args.until));
  return o;
}

// "gbt (trees and annealing), genetic, .."
std::string tuners_text(bool predicted) {
  std::string text;
  for (const Tuner& tuner : tuners())
    if (tuner.predicted == predicted)
      text += (text.empty() ? "" : ", ") + std::string(tuner.name) +
              (*tuner.about ? " (" + std::string(tuner.about) + ")" : "");
  return text;
}

Expected<int> check(const TuneRequest& request, const Target& target, int processes,
                    Console& console) {
  TW_ASSIGN(const std::vector<Task> tasks, chosen_tasks(request, target));
  TW_ASSIGN(const std::vector<CheckedKernel> kernels,
            check_records(tasks, request.log, target, request.network.threads, processes,
                          request.worker));
  if (!console.json) {
    console.out << check_table(kernels, console.columns);
    return kExitOk;
  }
  for (const CheckedKernel& kernel : kernels) write_json_line(console, to_json(kernel));
  return kExitOk;
}

// How a search ends: with the proof, or with a line that says why the whole network is not timed;
// "": nobody asks
struct WholeNetwork {
  std::optional<NetworkProof> proof = std::nullopt;
  std::string untimed = {};
};

// Searches, shows the search and its results, and writes a page if one is asked for. The exit code
// is kExitMismatch if some kernel has no working schedule.
Expected<int> search(TuneRequest request, const WholeNetwork& whole, const Target& target,
                     const std::string& page_file, Console& console) {
  const Interrupts interrupts;
  request.stop = &interrupts.asked();
  ConsoleTuneWatch shown(console, request.network.scheduler.trials, false);
  RoundsWatch watch(shown);
  if (whole.proof) request.kept = whole.proof->kept();
  TW_ASSIGN(TunedNetwork tuned, tune_network(request, target, watch));
  std::optional<NetworkVerdict> verdict;
  if (whole.proof) {
    watch.stage_begins("prove");
    TW_ASSIGN(verdict, judge_search(*whole.proof, request, tuned));
    watch.stage_ends();
  } else if (!whole.untimed.empty()) {
    verdict = NetworkVerdict{.reason = whole.untimed};
  }
  const NetworkVerdict* shown_verdict = verdict ? &*verdict : nullptr;
  if (console.json)
    write_json_line(console, tuned_json(tuned, shown_verdict, request.network.table));
  else console.out << tuned_text(tuned, shown_verdict, console.columns);
  const int code = tuned.outcome.failures.empty() ? kExitOk : kExitMismatch;
  if (page_file.empty()) return code;
  const std::string model = std::filesystem::path(request.model).filename().string();
  TW_TRY(write_file(page_file, page(TuneReport{model, target.name, tuned, watch.rounds()})));
  return code;
}

// Compiles with one choice wherever it can be made, and takes back as much of it as the limit
// demands. Layers that stay exact are added to options. nullopt: no layer takes the choice.
Expected<std::optional<AccuracyReport>> hold_choice(CompileOptions& options, const Target& target,
                                                    const AccuracyRequest& accuracy) {
  TW_ASSIGN(const CompiledNetwork network, CompiledNetwork::compile(options, target));
  const std::vector<LossyLayer>& lossy = network.report().lossy;
  const Algorithm algorithm = *options.algorithms.only;
  const bool made = algorithm == Algorithm::direct
                        ? !lossy.empty()
                        : std::ranges::any_of(lossy, [&](const LossyLayer& layer) {
                            return layer.choice.ends_with(algorithm_name(algorithm));
                          });
  if (!made) return std::nullopt;
  TW_ASSIGN(AccuracyReport report, hold_accuracy(network.report(), options, target, accuracy, {}));
  if (!report.within) return over_accuracy(report);
  return std::optional(std::move(report));
}

// Keeps the search within the limit: layers stay exact if their rounded operands exceed it, and
// layers refuse an algorithm that exceeds it on top of that rounding.
Error hold_to_limit(TuneRequest& request, const AccuracyRequest& accuracy, const Target& target,
                    Console& console) {
  bool held = false;
  for (int i = 0; i < kAlgorithmCount; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const bool direct = algorithm == Algorithm::direct;
    CompileOptions options;
    options.model = request.model;
    options.dims = request.dims;
    options.given = request.given;
    options.rounding = request.rounding;
    options.jobs = request.network.jobs;
    options.algorithms.only = algorithm;
    options.algorithms.exact = request.exact;
    TW_ASSIGN(const std::optional<AccuracyReport> report, hold_choice(options, target, accuracy));
    if (!report) continue;
    held = true;
    (direct ? request.exact : request.refused[algorithm]) = options.algorithms.exact;
    const std::string choice = direct ? report->layers.front().layer.choice
                                      : algorithm_name(algorithm);
    if (console.json)
      write_json_line(console, Json::Object{{direct ? "operands" : "algorithm", choice},
                                            {"accuracy", to_json(*report)}});
    else console.out << choice << ": " << accuracy_text(*report, console.columns);
  }
  if (!held && !console.json) console.out << "accuracy: no layer rounds more than it must\n";
  return Error::success();
}

// Options of the whole network, as --prove compiles it
CompileOptions proof_options(const TuneRequest& request) {
  CompileOptions options;
  options.model = request.model;
  options.output = "network.so";
  options.dims = request.dims;
  options.given = request.given;
  options.rounding = request.rounding;
  options.jobs = request.network.jobs;
  options.algorithms.exact = request.exact;
  return options;
}

FileRoles files_of(const TuneArgs& args, const std::string& log) {
  FileRoles files;
  files.reads_model(args.model);
  files.reads_target(args.target);
  args.given.reads(files);
  files.writes("the tuning log", log);
  files.writes("the report", args.report);
  return files;
}

// Compiles the network as it is before the search, where it can be timed.
WholeNetwork whole_network(const TuneArgs& args, const TuneRequest& request,
                           const CompileOptions& options, const Target& target, Console& console) {
  if (args.table) return {};
  if (args.no_prove) return {.untimed = "as --no-prove says"};
  if (!args.worker.empty()) return {.untimed = "as --worker measures elsewhere"};
  if (!target.devices.empty())
    return {.untimed = "as only processors are, and '" + target.main_device().name +
                       "' is a device"};
  Progress progress(console);
  progress.begin("compile");
  Expected<NetworkProof> proof = NetworkProof::begin(
      {.options = options,
       .schedules = {.log = request.log, .threads = args.threads},
       .limit = request.network.scheduler.seconds},
      target, nullptr);
  progress.end();
  if (!proof) {
    const std::string text = error_text(proof.takeError());
    return {.untimed = "as it does not run here: " + text.substr(0, text.find('\n'))};
  }
  if (!proof->fits())
    return {.untimed = "as a compile and the runs take " + format_seconds(proof->kept()) +
                       ", over a third of the time"};
  return {.proof = std::move(*proof)};
}

Error check_proof(const TuneArgs& args, const Target& target) {
  if (!args.prove) return Error::success();
  if (args.no_prove)
    return make_error(DiagCode::invalid_argument, "--prove and --no-prove: one of both");
  if (!target.devices.empty())
    return make_error(
        DiagCode::unsupported,
        "--prove times processors; what device '{0}' gains is in its cycles: tilewright bench",
        target.main_device().name);
  if (!args.worker.empty())
    return make_error(DiagCode::unsupported,
                      "--prove runs the whole network here, and --worker measures elsewhere");
  return Error::success();
}

Expected<int> tune(const TuneArgs& args, Console& console) {
  TuneRequest request;
  request.model = args.model;
  TW_ASSIGN(request.network, options_of(args));
  TW_ASSIGN(request.dims, parse_dims(args.dims));
  TW_ASSIGN(request.given, args.given.read());
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  TW_TRY(args.precision.apply(target));
  TW_ASSIGN(request.rounding, args.rounding.read());
  if (!console.json)
    for (const std::string& note : precision_notes(target)) console.err << "note: " + note + "\n";
  if (!target.wider.empty())
    return make_error(
        DiagCode::unsupported,
        "tuning is for one processor, and '{0}' is {1}: tune each into one log, which "
        "compile -t {0} reads",
        target.name, llvm::join(target.isa, ", "));
  TW_ASSIGN(request.log, tuning_log(args.log));
  if (request.network.tuner->predicted) {
    TW_ASSIGN(request.network.predictors, predictors_for(request.network.tuner->name, args.target));
  }
  const FileRoles files = files_of(args, request.log);
  TW_TRY(files.check());
  if (!args.report.empty()) TW_TRY(check_writable(args.report));
  if (!args.report.empty() && args.check > 0)
    return make_error(DiagCode::invalid_argument,
                      "--report is of a search, and --check makes none: one of both");
  request.space = {!args.no_rules, *sketch_source_from_name(args.space)};
  request.worker = args.worker;
  request.kernel = args.kernel;
  TW_ASSIGN(const std::optional<AccuracyRequest> accuracy, args.accuracy.request({}, args.threads));
  TW_TRY(check_proof(args, target));
  TW_TRY(check_tunable(request, target));
  if (accuracy) TW_TRY(hold_to_limit(request, *accuracy, target, console));
  if (args.check > 0) return check(request, target, args.check, console);
  const CompileOptions options = proof_options(request);
  const ScheduleOptions schedules{.log = request.log, .threads = args.threads};
  std::optional<NetworkLibrary> without;
  if (args.prove) {
    TW_ASSIGN(NetworkLibrary library,
              NetworkLibrary::compile(options, without_log(schedules), target));
    TW_TRY(library.run());
    without.emplace(std::move(library));
  }
  const WholeNetwork whole = whole_network(args, request, options, target, console);
  TW_ASSIGN(const int code, search(request, whole, target, args.report, console));
  TW_TRY(files.models_are_unchanged());
  if (!without || code != kExitOk) return code;
  TW_ASSIGN(const Comparison proof, prove(*without, options, schedules, target));
  if (console.json) write_json_line(console, Json::Object{{"proof", to_json(proof)}});
  else
    console.out << "network: " << proof_text(proof)
                << (proof.second_is_faster() ? "\n" : "; not surely faster\n");
  return kExitOk;
}

}  // namespace

CommandRun define_tune(Flags& flags) {
  auto args = std::make_shared<TuneArgs>();
  flags.argument("MODEL", args->model, "The ONNX file");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "A target that this machine, or --worker, can run; default: this machine");
  flags.text("--worker", args->worker, "DIR",
             "Another machine measures: the folder that its tilewright-worker serves");
  flags.text("--log", args->log, "FILE",
             "Where records are kept and read; default: the user's (docs/reference/tuning.md)");
  flags.text("--tuner", args->tuner, "NAME",
             tuners_text(false) + "; by predictors that were trained before: " + tuners_text(true) +
                 "; default gbt");
  flags.text("--space", args->space, "NAME", "all, template or generated sketches; default all");
  flags.flag("--no-rules", args->no_rules,
             "Spaces without their static rules: for comparing methods");
  flags.text("--objective", args->objective, "NAME", "Of gbt: rank or regression; default rank");
  flags.text("--features", args->features, "NAME",
             "Of gbt: loops, curve, itervar, knob; default loops");
  flags.flag("--no-transfer", args->no_transfer, "Tasks do not learn from each other");
  flags.integer("--trials", args->trials, "Stop after so many measurements; 0: no limit");
  flags.text("--time", args->time, "TIME",
             "End after 90s, 10m, 1h, measuring gains again included");
  flags.text("--until", args->until, "P%", "Stop when two rounds of every kernel gain less, as 2%");
  flags.integer("--patience", args->patience,
                "Leave a kernel after so many measurements without a gain; 0: never");
  flags.integer("--batch", args->batch,
                "Measurements between two fits of the model; 0: trials over kernels, at most 64");
  flags.seed("--seed", args->seed, "Of the search; default 1");
  flags.integer("--threads", args->threads, "Measure kernels on so many threads; default 1", 1);
  flags.integer("-j,--jobs", args->jobs, "Candidates built at once; 0: one a processor");
  flags.integer("--kernel", args->kernel,
                "Tune only this one, counted from 1 as in tilewright space");
  flags.flag("--table", args->table,
             "For comparing methods: records answer what a search asks for, count as its trials, "
             "and teach it nothing");
  flags.integer("--check", args->check,
                "Search nothing: measure the best records again beside the default schedules, in "
                "so many processes");
  flags.text("--max-error", args->accuracy.max_error, "X",
             "Leave out rounded operands and the algorithms with fewer multiplications that are "
             "over this limit: 1e-3, rms:0.02 or top1:99%, as of compile");
  flags.text("--accuracy-data", args->accuracy.data, "DIR",
             "What --max-error is measured on, as of compile; default: seeded inputs");
  flags.text("--report", args->report, "FILE.html",
             "A page of the search: its curves by trials and seconds, and what changed");
  flags.flag("--no-prove", args->no_prove,
             "Do not time the whole network at the end, and keep what was found untested; else a "
             "tenth of --time goes to its runs, and what a compile takes");
  flags.flag("--prove", args->prove,
             "Then also time the whole network with the log's schedules against the default ones");
  args->precision.define(flags);
  args->rounding.define(flags);
  flags.repeated("--dim", args->dims, "NAME=N",
                 "Bind a free dimension: batch=1, or by input and axis: x[3]=320");
  args->given.define(flags);
  return [args](Console& console) { return tune(*args, console); };
}

}  // namespace tw
