#include "cli/tune_network.h"

#include <csignal>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <ostream>

#include "cli/default_log.h"
#include "cli/progress.h"
#include "cli/tune_check.h"
#include "cli/tune_table.h"
#include "driver/run/temporary_folder.h"
#include "driver/tune/model_tasks.h"
#include "packager/output_file.h"
#include "support/end_signals.h"

namespace tw {
namespace {

std::atomic<bool>& interrupted() {  // by the user; a handler reaches nothing else
  static std::atomic<bool> flag{false};
  return flag;
}

// The first signal asks for an orderly end, the second one ends the process.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (interrupted().exchange(true)) end_by_signal(signal);
    };
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~Interrupts() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  Interrupts(const Interrupts&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)] = {};
};

Json summary(const NetworkTuner& tuner, const Peaks& peaks, StopReason reason,
             const TuneOutcome& outcome, bool curves) {
  Json::Array tasks;
  for (size_t i = 0; i < tuner.task_count(); ++i)
    tasks.push_back(tune_json(tuner, i, peaks, curves));
  return Json::Object{{"stopped", stop_reason_name(reason)},
                      {"seconds", outcome.seconds},
                      {"searched", outcome.searched},
                      {"trials", tuner.measured()},
                      {"network_seconds", tuner.network_seconds()},
                      {"default_network_seconds", tuner.first_seconds()},
                      {"reached", static_cast<int64_t>(outcome.reached)},
                      {"confirmed", outcome.confirmed.kept},
                      {"refuted", outcome.confirmed.refuted},
                      {"not_confirmed", outcome.confirmed.left},
                      {"tasks", tasks}};
}

// Where the time went.
std::string time_text(const TuneOutcome& outcome, const TuneBudget& budget, double before) {
  std::string text = format_seconds(outcome.seconds);
  if (budget.limited()) text += " of " + format_seconds(budget.limit());
  return text + ": " + format_seconds(before) + " before the search, " +
         format_seconds(outcome.searched) + " in it, " +
         format_seconds(outcome.seconds - before - outcome.searched) + " behind";
}

}  // namespace

Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target) {
  TW_ASSIGN(std::vector<Task> tasks, model_tasks(request.model, request.dims, target));
  if (request.kernel == 0) return tasks;
  if (request.kernel < 0 || static_cast<size_t>(request.kernel) > tasks.size())
    return make_error(DiagCode::invalid_argument, "there is no kernel {0}: the model has {1}",
                      request.kernel, tasks.size());
  return std::vector<Task>{std::move(tasks[static_cast<size_t>(request.kernel) - 1])};
}

Expected<std::string> tuning_log(const std::string& flag) {
  if (const std::string path = flag.empty() ? default_log() : flag; !path.empty()) return path;
  return make_error(DiagCode::invalid_argument,
                    "there is no home folder for the tuning log: --log FILE says where it is");
}

double seconds_from_text(const std::string& text) {
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {}
  const std::string unit = text.substr(end);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  return value > 0 && std::isfinite(value) ? value * factor : 0;
}

std::string to_string(const ConfirmedRecords& confirmed) {
  std::string text;
  if (confirmed.kept + confirmed.refuted > 0)
    text = "measured again: " + std::to_string(confirmed.kept) + " gains stand, " +
           std::to_string(confirmed.refuted) + " do not";
  if (confirmed.left > 0)
    text += (text.empty() ? "not measured again for want of time: "
                          : "; for want of time not measured again: ") +
            std::to_string(confirmed.left) + (confirmed.left == 1 ? " gain" : " gains");
  return text;
}

Expected<TuneOutcome> tune_network(const TuneRequest& request, const Target& target,
                                   Console& console, bool quiet) {
  const Target& place = target.main_device();
  const TuneBudget budget(request.network.scheduler.seconds, request.kept, [start = request.start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  TW_ASSIGN(TuningLog log, TuningLog::open(request.log, TuningLog::Mode::write));
  interrupted() = false;
  std::optional<Interrupts> interrupts;
  // Within compile nothing is left to do then: the records are in the log
  if (!quiet) interrupts.emplace();
  TW_ASSIGN(TuneServices services, tune_services(target, request.sources, &log));
  Progress progress(console);
  progress.begin("import");
  TW_ASSIGN(std::vector<Task> tasks, chosen_tasks(request, target));
  Peaks peaks;
  if (services.runs) {
    std::erase_if(tasks, [&](const Task& task) { return !services.runs(task); });
    if (tasks.empty())
      return make_error(
          DiagCode::unsupported,
          "device '{0}' runs no kernel of '{1}'; 'tilewright compile --json' says why of each",
          place.name, request.model);
  } else if (!request.network.table) {  // comparing methods needs no share of the peak
    progress.begin("probe");
    TW_ASSIGN(peaks, measure_peaks(target, request.network.threads));
  }
  progress.end();
  const std::vector<Task> all = target.devices.empty() && !request.network.table
                                    ? tasks
                                    : std::vector<Task>();
  const double before = budget.now();
  NetworkOptions options = request.network;
  options.scheduler.seconds = budget.search_seconds();
  TW_ASSIGN(const std::unique_ptr<NetworkTuner> tuner,
            NetworkTuner::create(std::move(tasks), place, std::move(services.network), options));
  TuneOutcome outcome;
  StopReason reason = StopReason::finished;
  std::atomic<double> kept = 0;  // for measuring again; asked for from several threads
  {
    TuneView view(console, *tuner, peaks, budget, options.scheduler.trials, quiet);
    const SearchWatch watch{.begins = [&](size_t task) { view.begins(task); },
                            .ends =
                                [&](size_t task) {
                                  // One more that the next round finds
                                  if (!all.empty())
                                    kept = budget.confirm_seconds(tuner->gains() + 1,
                                                                  tuner->measured(),
                                                                  budget.now() - before);
                                  view.ends(task);
                                },
                            .kept = [&] { return kept.load(); }};
    TW_ASSIGN(reason, tuner->run([&] { return budget.now(); }, &interrupted(), watch));
  }
  outcome.searched = budget.now() - before;
  progress.begin("confirm");
  TW_ASSIGN(
      outcome.confirmed,
      confirm_records(all, log, target, budget,
                      {.threads = request.network.threads,
                       .stop = [] { return interrupted().load(); },
                       .expected = TuneBudget::confirm_one(tuner->measured(), outcome.searched),
                       .watch = [&](const std::string& text) { progress.detail(text); }}));
  progress.end();
  outcome.trials = tuner->measured(), outcome.kernels = tuner->task_count(),
  outcome.reached = tuner->reached();
  outcome.seconds = budget.now();
  if (quiet) return outcome;
  if (console.json) {
    console.out << dump(summary(*tuner, peaks, reason, outcome, request.network.table), -1) << "\n";
    return outcome;
  }
  console.out << tune_table(*tuner, peaks, console.columns)
              << "stopped: " << stop_reason_name(reason) << " after "
              << time_text(outcome, budget, before) << "\n";
  if (const std::string text = to_string(outcome.confirmed); !text.empty())
    console.out << text << "\n";
  return outcome;
}

namespace {

// The same without the log.
std::shared_ptr<const ScheduleSource> without_log(ScheduleOptions schedules) {
  schedules.log.clear();
  return tuned_schedules(schedules);
}

}  // namespace

Expected<Comparison> prove(const CompileOptions& tuned, const ScheduleOptions& schedules,
                           const Target& target) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions options = tuned;
  options.emit = Emit::so;
  options.header.clear();
  options.dump_dir.clear();
  const std::string with = folder.path() + "/tuned.so", without = folder.path() + "/default.so";
  options.schedules = tuned_schedules(schedules);
  options.output = with;
  TW_TRY(compile_model(options, target).takeError());
  options.schedules = without_log(schedules);
  options.output = without;
  TW_TRY(compile_model(options, target).takeError());
  return compare_artifacts(without, with, {.threads = schedules.threads});
}

namespace {

// By a new file: somebody may have loaded the old one
Error replace_file(const std::string& from, const std::string& to, bool executable) {
  auto bytes = llvm::MemoryBuffer::getFile(from, false, false);
  if (!bytes)
    return make_error(DiagCode::io, "cannot read '{0}': {1}", from, bytes.getError().message());
  TW_ASSIGN(OutputFile file, OutputFile::create(to, (*bytes)->getBufferSize(), executable));
  TW_TRY(file.write(0, (*bytes)->getBuffer()));
  return file.commit();
}

// The library without the log, built elsewhere under the same file name: that is part of its bytes.
CompileOptions without_log(const TunedCompile& request, const std::string& folder) {
  namespace fs = std::filesystem;
  const CompileOptions& tuned = request.options;
  CompileOptions plain = tuned;
  plain.schedules = without_log(request.schedules);
  plain.output = folder + "/" + fs::path(tuned.output).filename().string();
  plain.header = tuned.header.empty() ? ""
                                      : folder + "/" + fs::path(tuned.header).filename().string();
  plain.dump_dir.clear();
  plain.passes = {};
  return plain;
}

double seconds_of(const CompileReport& report) {
  double sum = 0;
  for (const StageReport& stage : report.stages) sum += stage.seconds;
  return sum;
}

std::string limit_text(double limit, double second, const TuneOutcome& outcome) {
  std::string text = "tuning: " + format_seconds(outcome.seconds) + " of " + format_seconds(limit) +
                     ", " + std::to_string(outcome.trials) + " trials in " +
                     format_seconds(outcome.searched);
  if (outcome.reached < outcome.kernels)
    text += ", " + std::to_string(outcome.kernels - outcome.reached) + " of " +
            std::to_string(outcome.kernels) + " kernels not reached";
  if (const std::string again = to_string(outcome.confirmed); !again.empty()) text += "; " + again;
  return text + "; a second library and the proof took " + format_seconds(second);
}

}  // namespace

Expected<CompileReport> compile_tuned(TunedCompile request, const Target& target,
                                      Console& console) {
  constexpr double kProof = 0.15;   // of the limit, for the runs that are compared
  constexpr double kSlower = 1.15;  // that the second compile may take, as its kernels are larger
  CompileOptions& tuned = request.options;
  tuned.schedules = tuned_schedules(request.schedules);
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  Progress progress(console);
  const OnStage stage = [&](const std::string& name) { progress.begin(name); };
  TW_ASSIGN(CompileReport plain, compile_model(without_log(request, folder.path()), target, stage));
  progress.end();
  // Nothing is written
  const auto stops = [&](const CompileReport& report) {
    return tuned.strict && !report.faults.empty();
  };
  if (stops(plain)) return plain;
  const std::string header = header_path(tuned);
  const double limit = request.tuning.network.scheduler.seconds;
  CompareOptions comparing{.threads = request.schedules.threads};
  comparing.seconds = std::clamp(kProof * limit / comparing.processes, 0.05, comparing.seconds);
  request.tuning.start = std::chrono::steady_clock::now();
  request.tuning.kept = kSlower * seconds_of(plain) + compare_seconds(comparing);
  const auto keep_plain = [&](const std::string& why) -> Expected<CompileReport> {
    TW_TRY(replace_file(plain.output, tuned.output, true));
    TW_TRY(replace_file(plain.header, header, false));
    plain.output = tuned.output, plain.header = header;
    plain.notes.push_back("tuning: " + why);
    return std::move(plain);
  };
  if (request.tuning.kept >= limit)
    return keep_plain(format_seconds(limit) +
                      " leave no time for a search, as a second library and the proof take " +
                      format_seconds(request.tuning.kept) + "; the schedules are those without it");
  TW_ASSIGN(const TuneOutcome outcome, tune_network(request.tuning, target, console, true));
  const auto began = std::chrono::steady_clock::now();
  TW_ASSIGN(CompileReport report, compile_model(tuned, target, stage));
  if (stops(report)) return report;
  progress.begin("prove");
  TW_ASSIGN(const Comparison proof, compare_artifacts(plain.output, report.output, comparing));
  progress.end();
  const auto seconds = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  TuneOutcome all = outcome;
  all.seconds = seconds(request.tuning.start);
  const std::string spent = limit_text(limit, seconds(began), all);
  if (proof.second_is_faster()) {
    report.notes.push_back("tuning: " + proof_text(proof));
    report.notes.push_back(spent);
    return report;
  }
  TW_ASSIGN(
      CompileReport kept,
      keep_plain(proof_text(proof) + "; not surely faster, so the schedules are those without it"));
  kept.notes.push_back(spent);
  return kept;
}

Json to_json(const Comparison& proof) {
  return Json::Object{{"default_ms", proof.first_ms},
                      {"tuned_ms", proof.second_ms},
                      {"ratio", proof.ratio},
                      {"low", proof.interval.low},
                      {"high", proof.interval.high}};
}

std::string proof_text(const Comparison& proof) {
  char text[128];
  std::snprintf(text, sizeof text, "%.4g ms by default, %.4g ms tuned: %.3f x (%.3f .. %.3f)",
                proof.first_ms, proof.second_ms, proof.ratio, proof.interval.low,
                proof.interval.high);
  return text;
}

}  // namespace tw
