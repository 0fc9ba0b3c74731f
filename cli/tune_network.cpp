#include "cli/tune_network.h"

#include <csignal>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <ostream>

#include "cli/model_tasks.h"
#include "cli/progress.h"
#include "cli/temporary_folder.h"
#include "cli/tune_check.h"
#include "cli/tune_table.h"
#include "packager/output_file.h"
#include "support/end_signals.h"

namespace tw {
namespace {

std::atomic<bool>& interrupted() {   // by the user; a handler reaches nothing else
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

Json summary(const NetworkTuner& tuner, const Peaks& peaks, StopReason reason, double seconds, bool curves) {
  Json::Array tasks;
  for (size_t i = 0; i < tuner.task_count(); ++i) tasks.push_back(tune_json(tuner, i, peaks, curves));
  return Json::Object{{"stopped", stop_reason_name(reason)}, {"seconds", seconds}, {"trials", tuner.measured()}, {"network_seconds", tuner.network_seconds()},
                      {"default_network_seconds", tuner.first_seconds()}, {"tasks", tasks}};
}

}  // namespace

Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target) {
  TW_ASSIGN(std::vector<Task> tasks, model_tasks(request.model, request.dims, target));
  if (request.kernel == 0) return tasks;
  if (request.kernel < 0 || static_cast<size_t>(request.kernel) > tasks.size())
    return make_error(DiagCode::invalid_argument, "there is no kernel {0}: the model has {1}", request.kernel, tasks.size());
  return std::vector<Task>{std::move(tasks[static_cast<size_t>(request.kernel) - 1])};
}

Expected<std::string> tuning_log(const std::string& flag) {
  if (const std::string path = flag.empty() ? default_log() : flag; !path.empty()) return path;
  return make_error(DiagCode::invalid_argument, "there is no home folder for the tuning log: --log FILE says where it is");
}

double seconds_from_text(const std::string& text) {
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(end);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  return value > 0 && std::isfinite(value) ? value * factor : 0;
}

Error tune_network(const TuneRequest& request, const Target& target, Console& console, bool quiet) {
  const Target& place = target.main_device();
  TW_ASSIGN(TuningLog log, TuningLog::open(request.log, TuningLog::Mode::write));
  interrupted() = false;
  std::optional<Interrupts> interrupts;
  if (!quiet) interrupts.emplace();   // within compile nothing is left to do then: the records are in the log
  TW_ASSIGN(TuneServices services, tune_services(target, request.sources, &log));
  Progress progress(console);
  progress.begin("import");
  TW_ASSIGN(std::vector<Task> tasks, chosen_tasks(request, target));
  Peaks peaks;
  if (services.runs) {
    std::erase_if(tasks, [&](const Task& task) { return !services.runs(task); });
    if (tasks.empty()) return make_error(DiagCode::unsupported, "device '{0}' runs no kernel of '{1}'; 'tilewright compile --json' says why of each", place.name, request.model);
  } else if (!request.network.table) {   // comparing methods needs no share of the peak
    progress.begin("probe");
    TW_ASSIGN(peaks, measure_peaks(target, request.network.threads));
  }
  progress.end();
  const std::vector<Task> all = target.devices.empty() && !request.network.table ? tasks : std::vector<Task>();
  TW_ASSIGN(const std::unique_ptr<NetworkTuner> tuner, NetworkTuner::create(std::move(tasks), place, std::move(services.network), request.network));
  const auto start = std::chrono::steady_clock::now();
  const auto clock = [start] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  TuneView view(console, *tuner, peaks, quiet);
  TW_ASSIGN(const StopReason reason, tuner->run(clock, &interrupted(), [&](size_t task) { view.after_round(task, clock()); }));
  view.finish();
  progress.begin("confirm");
  TW_ASSIGN(const ConfirmedRecords confirmed, confirm_records(all, log, target, request.network.threads, [] { return interrupted().load(); }));
  progress.end();
  if (quiet) return Error::success();
  if (console.json) console.out << dump(summary(*tuner, peaks, reason, clock(), request.network.table), -1) << "\n";
  else console.out << tune_table(*tuner, peaks) << "stopped: " << stop_reason_name(reason) << " after " << format_seconds(clock()) << "\n";
  if (!console.json && confirmed.kept + confirmed.refuted > 0)
    console.out << "measured again: " << confirmed.kept << " gains stand, " << confirmed.refuted << " do not\n";
  return Error::success();
}

Expected<Comparison> prove(const CompileOptions& tuned, const Target& target) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions options = tuned;
  options.emit = Emit::so;
  options.header.clear();
  options.dump_dir.clear();
  const std::string with = folder.path() + "/tuned.so", without = folder.path() + "/default.so";
  options.output = with;
  TW_TRY(compile_model(options, target).takeError());
  options.schedules.log.clear();
  options.output = without;
  TW_TRY(compile_model(options, target).takeError());
  return compare_artifacts(without, with, {.threads = options.schedules.threads});
}

// The library without the log is built elsewhere, under the same file name: that is part of its bytes.
Expected<CompileReport> compile_proven(const CompileOptions& tuned, const Target& target, const OnStage& progress) {
  namespace fs = std::filesystem;
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  TW_ASSIGN(CompileReport report, compile_model(tuned, target, progress));
  CompileOptions plain = tuned;
  plain.schedules.log.clear();
  plain.output = folder.path() + "/" + fs::path(report.output).filename().string();
  plain.header = folder.path() + "/" + fs::path(report.header).filename().string();
  plain.dump_dir.clear();
  plain.passes = {};
  TW_ASSIGN(CompileReport without, compile_model(plain, target));
  if (progress) progress("prove");
  TW_ASSIGN(const Comparison proof, compare_artifacts(without.output, report.output, {.threads = tuned.schedules.threads}));
  if (proof.second_is_faster()) {
    report.notes.push_back("tuning: " + proof_text(proof));
    return report;
  }
  const auto put = [](const std::string& from, const std::string& to, bool executable) -> Error {   // a new file: somebody may have loaded the old one
    auto bytes = llvm::MemoryBuffer::getFile(from, false, false);
    if (!bytes) return make_error(DiagCode::io, "cannot read '{0}': {1}", from, bytes.getError().message());
    TW_ASSIGN(OutputFile file, OutputFile::create(to, (*bytes)->getBufferSize(), executable));
    TW_TRY(file.write(0, (*bytes)->getBuffer()));
    return file.commit();
  };
  TW_TRY(put(without.output, report.output, true));
  TW_TRY(put(without.header, report.header, false));
  without.output = report.output, without.header = report.header;
  without.notes.push_back("tuning: " + proof_text(proof) + "; not surely faster, so the schedules are those without it");
  return without;
}

Json to_json(const Comparison& proof) {
  return Json::Object{{"default_ms", proof.first_ms}, {"tuned_ms", proof.second_ms}, {"ratio", proof.ratio}, {"low", proof.interval.low}, {"high", proof.interval.high}};
}

std::string proof_text(const Comparison& proof) {
  char text[128];
  std::snprintf(text, sizeof text, "%.4g ms by default, %.4g ms tuned: %.3f x (%.3f .. %.3f)", proof.first_ms, proof.second_ms, proof.ratio, proof.interval.low, proof.interval.high);
  return text;
}

}  // namespace tw
