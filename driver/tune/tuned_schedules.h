// Schedules from a tuning log, or from the lock beside the model; the default ones for what neither
// knows.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "autotune/lock.h"
#include "driver/compile/compile.h"
#include "program/schedules.h"

namespace tw {

struct ScheduleOptions {
  std::string log = {};   // records are taken from it; "": none
  std::string lock = {};  // else pins from it, where it is there; "": none
  bool frozen = false;    // the lock must pin every kernel
  int threads = 1;        // records that were measured with so many
  // Only looked into, for a note; "": none
  std::string unused_log = {};
};
std::shared_ptr<const ScheduleSource> tuned_schedules(const ScheduleOptions& options);

std::string lock_beside(const std::string& model);  // path of tilewright.lock
Expected<Lock> read_lock(const std::string& path);  // an empty one where no file is
LockSection lock_place(const std::string& model, const std::map<std::string, int64_t>& dims,
                       const SymbolLimitsOf& limits, const Target& target, int threads);
// What a compile with tuned_schedules() chose, as a lock keeps it. threads: of the schedules.
LockSection lock_section(const CompileOptions& options, const Target& target, int threads,
                         const CompileReport& report);

}  // namespace tw
