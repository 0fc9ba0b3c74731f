#include "driver/tune/tuned_compile.h"

#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <filesystem>

#include "packager/output_file.h"

namespace tw {
namespace {

// Writes a new file, as somebody may have loaded the old one.
Error replace_file(const std::string& from, const std::string& to, bool executable) {
  auto bytes = llvm::MemoryBuffer::getFile(from, false, false);
  if (!bytes)
    return make_error(DiagCode::io, "cannot read '{0}': {1}", from, bytes.getError().message());
  return write_file(to, (*bytes)->getBuffer(), executable);
}

// The path in the folder, with the file's own name, which is part of the library's bytes; "" for ""
std::string in_folder(const std::string& folder, const std::string& path) {
  return path.empty() ? "" : folder + "/" + std::filesystem::path(path).filename().string();
}

double seconds_of(const CompileReport& report) {
  double sum = 0;
  for (const StageReport& stage : report.stages) sum += stage.seconds;
  return sum;
}

// True if a strict compile found faults: it writes nothing.
bool stops(const CompileOptions& options, const CompileReport& report) {
  return options.strict && !report.faults.empty();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Expected<DefaultLibrary> DefaultLibrary::compile(const CompileOptions& options,
                                                 const ScheduleOptions& schedules,
                                                 const Target& target, const OnStage& stage) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions plain = options;
  ScheduleOptions without_log = schedules;
  without_log.log.clear();
  plain.schedules = tuned_schedules(without_log);
  plain.output = in_folder(folder.path(), options.output);
  plain.header = in_folder(folder.path(), options.header);
  plain.weights = in_folder(folder.path(), options.weights);
  plain.dump_dir.clear();
  plain.passes = {};
  TW_ASSIGN(CompileReport report, compile_model(plain, target, stage));
  DefaultLibrary library(std::move(folder), std::move(plain), std::move(report));
  if (stops(options, library.report_)) return library;
  TW_TRY(
      check_runs(library.options_.output, {.threads = schedules.threads, .dims = library.sizes()}));
  return library;
}

std::vector<std::string> DefaultLibrary::sizes() const {
  return size_flags(report_.example, report_.symbol_names);
}

Expected<Comparison> DefaultLibrary::against(const std::string& second,
                                             CompareOptions options) const {
  options.dims = sizes();
  return compare_artifacts(options_.output, second, options);
}

Expected<CompileReport> DefaultLibrary::keep(const CompileOptions& options) const {
  TW_TRY(replace_file(options_.output, options.output, true));
  TW_TRY(replace_file(header_path(options_), header_path(options), false));
  if (!options.weights.empty()) TW_TRY(replace_file(options_.weights, options.weights, false));
  CompileReport report = report_;
  report.output = options.output;
  report.header = header_path(options);
  return report;
}

Expected<Comparison> prove(const DefaultLibrary& without, const CompileOptions& options,
                           const ScheduleOptions& schedules, const Target& target) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions tuned = options;
  tuned.schedules = tuned_schedules(schedules);
  tuned.output = in_folder(folder.path(), options.output);
  TW_TRY(compile_model(tuned, target).takeError());
  return without.against(tuned.output, {.threads = schedules.threads});
}

Expected<TunedCompileReport> compile_tuned(TunedCompile request, const Target& target,
                                           TuneWatch& watch) {
  constexpr double kProof = 0.15;   // share of the limit for the runs that are compared
  constexpr double kSlower = 1.15;  // factor for the second compile, as its kernels are larger
  const CompileOptions& options = request.options;
  TW_TRY(check_tunable(request.tuning, target));
  const OnStage stage = [&](const std::string& name) { watch.stage_begins(name); };
  TunedCompileReport out;
  TW_ASSIGN(const DefaultLibrary without,
            DefaultLibrary::compile(options, request.schedules, target, stage));
  out.report = without.report();
  watch.stage_ends();
  if (stops(options, out.report)) return out;
  const double limit = request.tuning.network.scheduler.seconds;
  CompareOptions comparing{.threads = request.schedules.threads};
  if (limit > 0)
    comparing.seconds = std::clamp(kProof * limit / comparing.processes, 0.05, comparing.seconds);
  request.tuning.start = std::chrono::steady_clock::now();
  out.kept = kSlower * seconds_of(out.report) + compare_seconds(comparing);
  request.tuning.kept = out.kept;
  if (limit > 0 && out.kept >= limit) {
    TW_ASSIGN(out.report, without.keep(options));
    return out;
  }
  TW_ASSIGN(out.network, tune_network(request.tuning, target, watch));
  out.outcome = out.network->outcome;
  const auto began = std::chrono::steady_clock::now();
  CompileOptions tuned = options;
  tuned.schedules = tuned_schedules(request.schedules);
  TW_ASSIGN(CompileReport report, compile_model(tuned, target, stage));
  if (stops(tuned, report)) {
    out.report = std::move(report);
    return out;
  }
  watch.stage_begins("prove");
  TW_ASSIGN(out.proof, without.against(report.output, comparing));
  watch.stage_ends();
  out.outcome->seconds = seconds_since(request.tuning.start);
  out.second = seconds_since(began);
  if (out.proof->second_is_faster()) {
    out.report = std::move(report);
  } else {
    TW_ASSIGN(out.report, without.keep(options));
  }
  return out;
}

}  // namespace tw
