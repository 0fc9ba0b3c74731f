#include "driver/tune/tuned_compile.h"

#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <filesystem>

#include "driver/run/temporary_folder.h"
#include "packager/output_file.h"

namespace tw {
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
  return write_file(to, (*bytes)->getBuffer(), executable);
}

// The library without the log, built elsewhere under the same file name: that is part of its bytes.
CompileOptions default_compile(const TunedCompile& request, const std::string& folder) {
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

// Nothing is written.
bool stops(const CompileOptions& options, const CompileReport& report) {
  return options.strict && !report.faults.empty();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The library without the log takes the place of the other.
Error keep_default(CompileReport& report, const CompileOptions& tuned) {
  TW_TRY(replace_file(report.output, tuned.output, true));
  TW_TRY(replace_file(report.header, header_path(tuned), false));
  report.output = tuned.output;
  report.header = header_path(tuned);
  return Error::success();
}

}  // namespace

Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch) {
  constexpr double kProof = 0.15;   // of the limit, for the runs that are compared
  constexpr double kSlower = 1.15;  // that the second compile may take, as its kernels are larger
  CompileOptions& tuned = request.options;
  tuned.schedules = tuned_schedules(request.schedules);
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  const OnStage stage = [&](const std::string& name) { watch.stage_begins(name); };
  TunedCompileReport out;
  TW_ASSIGN(out.report, compile_model(default_compile(request, folder.path()), target, stage));
  watch.stage_ends();
  if (stops(tuned, out.report)) return out;
  const double limit = request.tuning.network.scheduler.seconds;
  CompareOptions comparing{.threads = request.schedules.threads};
  if (limit > 0)
    comparing.seconds = std::clamp(kProof * limit / comparing.processes, 0.05, comparing.seconds);
  request.tuning.start = std::chrono::steady_clock::now();
  out.kept = kSlower * seconds_of(out.report) + compare_seconds(comparing);
  request.tuning.kept = out.kept;
  if (limit > 0 && out.kept >= limit) {
    TW_TRY(keep_default(out.report, tuned));
    return out;
  }
  TW_ASSIGN(const TunedNetwork network, tune_network(request.tuning, target, watch));
  out.outcome = network.outcome;
  const auto began = std::chrono::steady_clock::now();
  TW_ASSIGN(CompileReport report, compile_model(tuned, target, stage));
  if (stops(tuned, report)) {
    out.report = std::move(report);
    return out;
  }
  watch.stage_begins("prove");
  TW_ASSIGN(out.proof, compare_artifacts(out.report.output, report.output, comparing));
  watch.stage_ends();
  out.outcome->seconds = seconds_since(request.tuning.start);
  out.second = seconds_since(began);
  if (out.proof->second_is_faster()) out.report = std::move(report);
  else TW_TRY(keep_default(out.report, tuned));
  return out;
}

}  // namespace tw
