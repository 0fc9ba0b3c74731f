// tilewright compile: the steps of the command.
#include "cli/commands/compile/job.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <ostream>

#include "cli/progress.h"
#include "cli/summary.h"
#include "cli/targets.h"
#include "cli/text/errors_json.h"
#include "cli/tune_text.h"
#include "cli/tune_watch.h"
#include "driver/report/page.h"
#include "frontend/frontend.h"
#include "packager/output_file.h"
#include "program/not_pinned.h"

namespace tw {
namespace {

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

// With --untrusted, a child process does the rest of the command.
Expected<Confined> confined_compile(const CompileArgs& args, Console& console) {
  if (!args.untrusted.on) return confined(args.untrusted, {}, {}, console);
  if (!(args.log + args.tune + args.cache.folder).empty())
    return make_error(DiagCode::unsupported,
                      "--untrusted does not go with --log, --tune and --cache: a stranger's model "
                      "must not write what other compiles take");
  const std::string budget = args.budget == kNoBudget ? "" : args.budget;
  return confined(
      args.untrusted,
      {folder_of(args.model), cache_folder(args.model), target_file(args.target, config_dirs()),
       budget, args.given.file(), args.accuracy.data, args.verify.data},
      {args.output.empty() ? "." : folder_of(args.output), folder_of(args.header),
       folder_of(args.weights), folder_of(args.report), folder_of(args.depfile),
       folder_of(args.junit), args.dump_dir},
      console);
}

Expected<int> finish_text(Job& job, const std::string& text, Console& console) {
  const std::string& output = job.options.output;  // empty: standard output
  if (!output.empty()) TW_TRY(write_file(output, text));
  TW_TRY(publish(job));
  if (!output.empty()) return kExitOk;
  if (console.json) write_json(console, Json::Object{{"emit", job.args.emit}, {"text", text}});
  else console.out << text;
  return kExitOk;
}

int show_not_pinned(const NotPinned& missing, Console& console) {
  if (console.json) {
    write_json(console, Json::Object{{"error", errors_json(missing.diags)},
                                     {"not_pinned", to_json(missing.kernels)}});
  } else {
    console.out << to_string(missing.kernels);
    print_errors(console, missing.diags);
  }
  return kExitNotPinned;
}

Expected<int> compile_steps(CompileArgs args, Console& console) {
  TW_ASSIGN(const Confined work, confined_compile(args, console));
  if (work.code) return *work.code;
  TW_ASSIGN(Target target, choose_target(args));
  Job job{args, std::move(target)};
  TW_TRY(prepare_job(job));
  const auto start = std::chrono::steady_clock::now();
  const int64_t started = std::time(nullptr);
  if (!job.key.empty())
    if (const std::optional<CachedBuild> build = job.cache->find(job.key))
      return finish_cached_library(job, *build, console);
  Progress progress(console);
  TW_ASSIGN(CompileReport report, build(job, console, progress));
  TW_TRY(job.files.models_are_unchanged());
  if (!(args.strict && !report.faults.empty()))
    TW_TRY(verify_made(job, [&](const std::string& stage) { progress.begin(stage); }));
  if (job.verified && !job.verified->same()) {
    progress.end();
    return show_mismatch(job, console);
  }
  Json::Array estimates;
  if (!args.report.empty() && !(args.strict && !report.faults.empty())) {
    progress.begin("report");
    TW_ASSIGN(estimates, write_report_page(job, report));
  }
  progress.end();
  report.output = job.places.library, report.header = job.places.header;
  std::ranges::copy(job.notes, std::back_inserter(report.notes));
  if (job.verified) std::ranges::copy(job.verified->warnings, std::back_inserter(report.warnings));
  if (job.cache && job.key.empty())
    report.notes.push_back("the library is not cached: " + why_not_cached(job));
  if (!console.json) progress.print(remarks(report));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json::Object json = to_json(report, job.passes, seconds, args.tune.empty() ? 0 : started);
  if (!estimates.empty()) json.push_back({"estimates", estimates});
  if (args.strict && !report.faults.empty()) {
    if (console.json) write_json(console, json);
    return kExitInternal;
  }
  if (!job.passes.empty() && !console.json) progress.print(pass_table(job.passes));
  if (is_text(job.options.emit)) return finish_text(job, report.text, console);
  if (job.objects)
    if (Error error = job.objects->finish())
      progress.print("warning: " + error_text(std::move(error)) + "\n");
  if (!job.key.empty())
    if (Error error = add_to_build_cache(job, json, remarks(report)))
      progress.print("warning: " + error_text(std::move(error)) + "\n");
  return finish_library(job, json,
                        summary_text(report, seconds, args.tune.empty() ? 0 : started,
                                     console.columns, args.optimize == "size"),
                        console);
}

}  // namespace

Expected<int> compile_command(CompileArgs args, Console& console) {
  Expected<int> done = compile_steps(std::move(args), console);
  if (done) return done;
  int code = kExitOk;
  TW_TRY(llvm::handleErrors(done.takeError(), [&](const NotPinned& missing) {
    code = show_not_pinned(missing, console);
  }));
  return code;
}

}  // namespace tw
