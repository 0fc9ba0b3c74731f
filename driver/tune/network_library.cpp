#include "driver/tune/network_library.h"

#include <llvm/Support/MemoryBuffer.h>

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

}  // namespace

ScheduleOptions without_log(ScheduleOptions schedules) {
  schedules.log.clear();
  return schedules;
}

bool stops(const CompileOptions& options, const CompileReport& report) {
  return options.strict && !report.faults.empty();
}

Expected<NetworkLibrary> NetworkLibrary::compile(const CompileOptions& options,
                                                 const ScheduleOptions& schedules,
                                                 const Target& target, const OnStage& stage) {
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  CompileOptions plain = options;
  plain.schedules = tuned_schedules(schedules);
  plain.output = in_folder(folder.path(), options.output);
  plain.header = in_folder(folder.path(), options.header);
  plain.weights = in_folder(folder.path(), options.weights);
  plain.dump_dir.clear();
  plain.passes = {};
  TW_ASSIGN(CompileReport report, compile_model(plain, target, stage));
  return NetworkLibrary(std::move(folder), std::move(plain), std::move(report), schedules.threads);
}

Error NetworkLibrary::run() {
  TW_ASSIGN(run_seconds_, check_runs(path(), {.threads = threads_, .dims = sizes()}));
  return Error::success();
}

double NetworkLibrary::compile_seconds() const {
  double sum = 0;
  for (const StageReport& stage : report_.stages) sum += stage.seconds;
  return sum;
}

std::vector<std::string> NetworkLibrary::sizes() const {
  return size_flags(report_.example, report_.symbol_names);
}

Expected<Comparison> NetworkLibrary::against(const std::string& second,
                                             CompareOptions options) const {
  options.dims = sizes();
  return compare_artifacts(path(), second, options);
}

Expected<CompileReport> NetworkLibrary::keep(const CompileOptions& options) const {
  TW_TRY(replace_file(options_.output, options.output, true));
  TW_TRY(replace_file(header_path(options_), header_path(options), false));
  if (!options.weights.empty()) TW_TRY(replace_file(options_.weights, options.weights, false));
  CompileReport report = report_;
  report.output = options.output;
  report.header = header_path(options);
  return report;
}

}  // namespace tw
