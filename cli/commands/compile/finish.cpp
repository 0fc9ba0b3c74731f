// tilewright compile: checks a library against its budget and its limit of accuracy, and finishes
// it.
#include "cli/commands/compile/job.h"

#include <chrono>
#include <filesystem>
#include <ostream>

#include "cli/timed_report.h"
#include "driver/report/estimates.h"
#include "driver/report/page.h"
#include "packager/output_file.h"
#include "support/parallel.h"

namespace tw {
namespace {

// Removes the library of an earlier compile, so that no build takes it for one within its budget.
void remove_places(const Places& places) {
  std::error_code none;
  for (const std::string& path : {places.library, places.header})
    std::filesystem::remove(path, none);
}

Expected<std::vector<BudgetRow>> hold_budget(const Job& job) {
  if (job.budget.empty()) return std::vector<BudgetRow>{};
  BudgetRequest request{job.options.output, job.args.model, job.budget, job.args.threads, {}};
  if (job.accuracy && job.accuracy->limit.measure == ErrorMeasure::largest)
    request.error = job.accuracy->within ? job.accuracy->error : job.accuracy->first;
  TW_ASSIGN(const std::vector<BudgetRow> rows, check_budget(request));
  if (!job.args.junit.empty())
    TW_TRY(write_file(job.args.junit, junit_text(rows, job.places.library)));
  return rows;
}

// True if the limit is the budget's: the budget's table tells that it cannot be met.
bool limit_of_budget(const Job& job) { return job.args.accuracy.max_error.empty(); }

// The error of a --max-error that cannot be met; with --junit it also becomes a case there.
Error over_limit(const Job& job, const AccuracyReport& accuracy) {
  if (!job.args.junit.empty())
    TW_TRY(write_file(
        job.args.junit,
        junit_text({{Budgeted::error, accuracy.error, accuracy.limit.most}}, job.places.library)));
  return over_accuracy(accuracy);
}

}  // namespace

// Holds the library to its accuracy: compiles it again if layers lost their choices.
Expected<CompileReport> within_accuracy(Job& job, CompileReport report, const OnStage& stage) {
  if (!job.limit) return report;
  TW_ASSIGN(AccuracyReport held, hold_accuracy(report, job.options, job.target, *job.limit, stage));
  if (!held.within && !limit_of_budget(job)) return over_limit(job, held);
  job.accuracy = std::move(held);
  if (job.accuracy->taken_back() == 0) return report;
  job.passes.clear();
  return compile_model(job.options, job.target, stage);
}

Error verify_made(Job& job, const OnStage& stage) {
  const VerifyFlags& flags = job.args.verify;
  if (!flags.on) return Error::success();
  const auto start = std::chrono::steady_clock::now();
  Expected<VerifiedLibrary> verified = verify_library({job.options.output,
                                                       job.args.model,
                                                       {flags.data, 0, job.options.given.forms, {}},
                                                       job.options.verified->tolerance,
                                                       {flags.place, job.args.threads}},
                                                      stage);
  job.verify_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!verified) return verified.takeError();
  job.verified = std::move(*verified);
  return Error::success();
}

int show_mismatch(const Job& job, Console& console) {
  if (console.json) {
    write_json(console, Json::Object{{"output", Json()},
                                     {"ok", false},
                                     {"verified", to_json(*job.verified, job.verify_seconds)}});
  } else {
    console.out << verified_text(*job.verified, job.verify_seconds);
    console.err << "the library does not compute what " << job.args.model
                << " says: nothing is written; 'tilewright verify --per-node' of a library "
                   "compiled without --verify names the first node that is off\n";
  }
  return kExitMismatch;
}

Error publish(Job& job) {
  if (!job.runner.empty()) TW_TRY(write_file(job.runner, job.runner_program, true));
  if (!job.depfile.empty()) TW_TRY(write_file(job.depfile, job.dependencies));
  return job.staged.publish();
}

// The last steps of a library, compiled or from the cache
Expected<int> finish_library(Job& job, Json::Object report, const std::string& summary,
                             Console& console) {
  const std::string& library = job.places.library;
  TW_ASSIGN(const std::vector<BudgetRow> rows, hold_budget(job));
  if (within(rows)) TW_TRY(publish(job));
  else remove_places(job.places);
  if (console.json) {
    if (job.accuracy) report.push_back({"accuracy", to_json(*job.accuracy)});
    if (job.verified) report.push_back({"verified", to_json(*job.verified, job.verify_seconds)});
    if (!rows.empty()) report.push_back({"budget", to_json(rows)});
    if (!within(rows)) report.push_back({"ok", false});
    if (job.args.runner.wanted) report.push_back({"runner", job.places.runner});
    write_json(console, report);
  } else {
    console.out << summary << job.args.runner.line(library);
    if (job.verified) console.out << verified_text(*job.verified, job.verify_seconds);
    const bool exact_enough = !job.accuracy || job.accuracy->within;
    if (job.accuracy && exact_enough) console.out << accuracy_text(*job.accuracy, console.columns);
    if (!rows.empty()) console.out << to_string(rows);
    if (!exact_enough) print_errors(console, take_diags(over_accuracy(*job.accuracy)));
    else if (!within(rows))
      console.err << "over the budget: nothing is written, and there is no " << library << "\n";
  }
  return within(rows) ? kExitOk : kExitBudget;
}

// Writes the page of --report. Returns its estimates, if it has any.
Expected<Json::Array> write_report_page(const Job& job, const CompileReport& compiled) {
  const CompileArgs& args = job.args;
  Report report = make_report(job.planned, compiled, job.target);
  report.model = std::filesystem::path(args.model).filename().string();
  const bool here = args.target == "host";
  if (here) add_times(compiled, report);
  else TW_TRY(add_estimates(job.planned, compiled, job.target, threads_or_all(args.jobs), report));
  if (here && args.report_errors > 0)
    add_errors(job.options, job.target, compiled, args.report_errors, report);
  if (job.accuracy) add_accuracy(*job.accuracy, accuracy_note(*job.accuracy), report);
  TW_TRY(write_file(job.report, page(report)));
  return estimates_json(report);
}

}  // namespace tw
