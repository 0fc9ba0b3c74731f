// The lock beside a model, and what a compile puts into it.
#pragma once
#include <map>
#include <string>

#include "autotune/lock.h"
#include "driver/compile/compile.h"

namespace tw {

std::string lock_beside(const std::string& model);  // path of tilewright.lock
Expected<Lock> read_lock(const std::string& path);  // an empty one where no file is
LockSection lock_place(const std::string& model, const std::map<std::string, int64_t>& dims,
                       const SymbolLimitsOf& limits, const Target& target, int threads);
// What a compile with tuned_schedules() chose, as a lock keeps it. threads: of the schedules.
LockSection lock_section(const CompileOptions& options, const Target& target, int threads,
                         const CompileReport& report);

}  // namespace tw
