// The lock beside a model, and the choices of a compile that it keeps.
#pragma once
#include <map>
#include <string>

#include "autotune/lock.h"
#include "driver/compile/compile.h"

namespace tw {

std::string lock_beside(const std::string& model);  // path of tilewright.lock
Expected<Lock> read_lock(const std::string& path);  // an empty lock if there is no file
LockSection lock_place(const std::string& model, const std::map<std::string, int64_t>& dims,
                       const SymbolLimitsOf& limits, const Target& target, int threads);
// The choices of a compile with tuned_schedules(), as a lock keeps them. threads: as in its
// schedules
LockSection lock_section(const CompileOptions& options, const Target& target, int threads,
                         const CompileReport& report);

}  // namespace tw
