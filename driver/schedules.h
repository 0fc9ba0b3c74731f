// Where the schedule of each kernel comes from: a tuning log, the lock beside the model, or the
// search space's default point.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "autotune/lock.h"
#include "autotune/log.h"
#include "autotune/measured_layouts.h"
#include "autotune/transfer.h"
#include "ir/group.h"
#include "ir/schedule/schedule.h"
#include "kernels/lower.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {

struct ScheduleOptions {
  std::string log;         // records are taken from it; "": none
  std::string lock;        // else pins from it, where it is there; "": none
  bool frozen = false;     // the lock must pin every kernel
  int threads = 1;         // records that were measured with so many
  std::string unused_log;  // only looked into, for a note; "": none
};

struct ChosenSchedule {
  Schedule schedule;
  Kernel kernel;  // scheduled
  Pin pin;
  std::string problem;  // a record or pin that cannot be used, and why; "": none
  // Why the default schedule does not apply and this is the plain one, which is a bug; "": it does
  std::string fault;
};

class ScheduleChooser {
 public:
  // model: the file's path or name; target: of the compile. Errors: a log or lock that cannot be
  // read; frozen and no lock for this compile.
  static Expected<ScheduleChooser> make(const ScheduleOptions& options, const std::string& model,
                                        const std::map<std::string, int64_t>& dims,
                                        const SymbolLimitsOf& limits, const Target& target);

  // Before layouts are assigned: what the log has measured of other ones, or those that the lock
  // has settled. Null: nothing.
  Expected<std::unique_ptr<CostOracle>> layout_costs(const Graph& graph, const Target& target,
                                                     const AlgorithmOptions& options) const;
  // Before the choice of algorithms: what the log has measured of each, and what the lock pins.
  Expected<AlgorithmOptions> algorithms(const Graph& graph, const std::vector<Group>& groups,
                                        const Target& target, AlgorithmOptions options) const;

  // After fusion: which task each group is. Reads what is known of them.
  Error see(const Graph& graph, const std::vector<Group>& groups);

  // For a kernel of one of the groups on the target or one of its devices; any thread may ask.
  // Without see() the default, or the plain schedule.
  Expected<ChosenSchedule> choose(const LoweredGroup& lowered, const Target& place,
                                  bool plain = false) const;

  // The lock has the kernel's task elsewhere, on the processor or another device: places are then
  // those of the compile that made it.
  bool placed_elsewhere(const LoweredGroup& lowered, const Target& place) const;

  // The same as choose() for a kernel that goes into the program: remembers problems and what is
  // not pinned.
  Expected<ChosenSchedule> take(const LoweredGroup& lowered, const Target& place,
                                bool plain = false);
  // Frozen: everything that the lock lacks, as one error.
  Error complete() const;

  bool in_use() const { return !options_.log.empty() || locked_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<std::string>& faults() const { return faults_; }  // of default schedules: bugs
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using PinKey = std::tuple<std::string, std::string, std::string>;  // task, target, kernel
  struct GroupTask {
    std::string key, name, algorithm;
  };

  ScheduleChooser(ScheduleOptions options, LockSection place)
      : options_(std::move(options)), place_(std::move(place)) {}
  Error read_lock();
  Expected<int64_t> read_log(const std::string& path, bool keep);
  static Error use_default(const LoweredGroup& lowered, const Target& place,
                           ChosenSchedule& chosen);
  bool transfer(const LoweredGroup& lowered, const Target& place, const Kernel* shared,
                ChosenSchedule& chosen) const;
  bool shares(const Kernel& kernel, const Target& place, const Kernel* shared) const;
  KernelSeconds measured_by(TuningLog& log, const Target& target) const;
  const char* source() const { return options_.log.empty() ? "lock" : "log"; }

  ScheduleOptions options_;
  LockSection place_;                 // layouts, algorithms: of the lock
  std::vector<std::string> targets_;  // keys of the processor and the devices
  bool locked_ = false;
  std::map<PinKey, std::vector<Pin>> pins_;  // the best first; of a lock one
  // By target: of kernels that have records
  std::map<std::string, std::vector<RecordNote>> notes_of_;
  std::map<ValueId, GroupTask> tasks_;  // by what the nodes of the group make
  std::vector<std::string> warnings_, notes_, faults_;
  std::vector<std::string> missing_;
};

std::string lock_beside(const std::string& model);  // path of tilewright.lock
Expected<Lock> read_lock(const std::string& path);  // an empty one where no file is
LockSection lock_place(const std::string& model, const std::map<std::string, int64_t>& dims,
                       const SymbolLimitsOf& limits, const Target& target, int threads);

}  // namespace tw
