#include "driver/tune/lock_file.h"

#include <algorithm>
#include <filesystem>

#include "passes/precision.h"
#include "support/regular_file.h"

namespace tw {

std::string lock_beside(const std::string& model) {
  return (std::filesystem::path(model).parent_path() / "tilewright.lock").string();
}

Expected<Lock> read_lock(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return Lock();
  TW_ASSIGN(const auto buffer, regular_file(path));
  return parse_lock(buffer->getBuffer(), path);
}

LockSection lock_place(const std::string& model, const std::map<std::string, int64_t>& dims,
                       const SymbolLimitsOf& limits, const Target& target, int threads) {
  SymbolLimitsOf named;
  for (const auto& [symbol, range] : limits) named[interface_name(symbol)] = range;
  return {std::filesystem::path(model).filename().string(),
          dims,
          std::move(named),
          target.name,
          codegen_hash(target),
          threads,
          precision_of(target)};
}

LockSection lock_section(const CompileOptions& options, const Target& target, int threads,
                         const CompileReport& report) {
  LockSection section = lock_place(options.model, report.dims, report.limits, target, threads);
  std::ranges::copy_if(report.schedules, std::back_inserter(section.pins),
                       [](const Pin& pin) { return !pin.task.empty(); });
  section.layouts = report.layouts;
  section.algorithms = report.algorithms;
  section.exact = report.exact;
  return section;
}

}  // namespace tw
