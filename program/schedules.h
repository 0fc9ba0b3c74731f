// Where the schedules of a model's kernels come from. Here: the defaults, and the plain ones of
// references. What was measured or locked is another source (driver/tune/tuned_schedules.h).
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/cost.h"
#include "ir/schedule/schedule.h"
#include "passes/choose/choose_algorithms.h"
#include "program/lower_program.h"

namespace tw {

// How one kernel is scheduled, and where that comes from.
struct Pin {
  // task_key, target_key of where it runs, hash of the lowered kernel; task "": of no task
  std::string task, target, kernel_hash;
  std::string name, algorithm;  // task_name, algorithm_name
  bool tuned = false;           // by a record of its own; else the default schedule
  bool transferred = false;     // or that of the record of a kernel like it
  bool predicted = false;       // or what predictors chose without measuring
  double seconds = 0;           // tuned: the record's median
  int64_t time = 0;             // tuned: when it was measured
  std::string tool;             // tuned: the version of tilewright that measured it
  std::string schedule;         // text
  // transferred: what of that record's point this kernel has no place for, "block_lines=4, .."
  std::string left_out = {};
  // by default: of how many measured schedules the default one is the best; 0: of none
  int trials = 0;
  auto operator<=>(const Pin&) const = default;
};
const char* source_of(const Pin& pin);  // "tuned", "transferred", "predicted", "default"

struct ChosenSchedule {
  Schedule schedule;
  Kernel kernel;  // scheduled
  Pin pin;
  std::string problem = {};  // a record or pin that cannot be used, and why; "": none
  // Why the default schedule does not apply and this is the plain one, which is a bug; "": it does
  std::string fault = {};
};

// What people hear of the schedules of a program, a line each.
struct ScheduleRemarks {
  bool in_use = false;  // something else than the defaults was asked
  std::vector<std::string> warnings, notes;
  std::vector<std::string> faults;  // bugs of default schedules
};

// The schedules of one model for one target: here the default ones.
class ModelSchedules {
 public:
  virtual ~ModelSchedules() = default;

  // Layers that are to stay exact, by the value that their product makes.
  virtual std::set<std::string> exact_layers() const { return {}; }
  // What is known of the costs of layouts. graph: as it was imported. Null: nothing.
  virtual Expected<std::unique_ptr<CostOracle>> layout_costs(const Graph& graph,
                                                             const Target& target,
                                                             const AlgorithmOptions& options) const;
  // What is known of algorithms, before they are chosen for the model's own graph.
  virtual Expected<AlgorithmOptions> algorithms(const Graph& graph,
                                                const std::vector<Group>& groups,
                                                const Target& target,
                                                AlgorithmOptions options) const;
  // What is known of the kernels of these groups, which choose() then takes. Once more when groups
  // have changed.
  virtual Error read(const std::vector<FusedGraph>& fused);
  // Of a kernel, on the target or one of its devices; any thread may ask.
  virtual Expected<ChosenSchedule> choose(const LoweredKernel& kernel, const Target& place) const;
  // The kernel's place is settled, and elsewhere than on the device.
  virtual bool placed_elsewhere(const LoweredKernel& kernel, const Target& device) const;
  // Of the kernels of a program. Errors: schedules that must be there and are not.
  virtual Expected<ScheduleRemarks> review(const std::vector<LoweredKernel>& kernels,
                                           const std::vector<ChosenSchedule>& chosen) const;
};

// The plain schedule of every kernel.
class PlainSchedules final : public ModelSchedules {
 public:
  Expected<ChosenSchedule> choose(const LoweredKernel& kernel, const Target& place) const override;
};

// Of any model.
class ScheduleSource {
 public:
  virtual ~ScheduleSource() = default;
  // model: the file's path or name; target: of the compile. Errors: what cannot be read.
  virtual Expected<std::unique_ptr<ModelSchedules>> open(const std::string& model,
                                                         const std::map<std::string, int64_t>& dims,
                                                         const SymbolLimitsOf& limits,
                                                         const Target& target) const = 0;
};

}  // namespace tw
