// Sources of schedules for a model's kernels. This file has the default schedules, and the plain
// ones that references use. Measured and locked schedules are another source
// (driver/tune/tuned_schedules.h).
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/cost.h"
#include "ir/schedule/constant_stages.h"
#include "passes/choose/choose_algorithms.h"
#include "program/lower_program.h"

namespace tw {

// The schedule of one kernel, and its source.
struct Pin {
  // task_key, the target_key of the place where it runs, the hash of the lowered kernel; task "":
  // the kernel belongs to no task
  std::string task, target, kernel_hash;
  std::string name, algorithm;  // task_name, algorithm_name
  bool tuned = false;           // the schedule comes from a record of this kernel
  bool transferred = false;     // or from the record of a similar kernel
  bool predicted = false;       // or from predictors, without measuring
  double seconds = 0;           // tuned: median time of the record
  int64_t time = 0;             // tuned: date of the measurement
  std::string tool;             // tuned: version of tilewright that measured it
  std::string schedule;         // in text form
  // transferred: parts of the other record's point that this kernel cannot use, "block_lines=4, .."
  std::string left_out = {};
  // default: the number of measured schedules among which the default is the best; 0: none measured
  int trials = 0;
  auto operator<=>(const Pin&) const = default;
};
const char* source_of(const Pin& pin);  // "tuned", "transferred", "predicted", "default"

struct ChosenSchedule {
  Schedule schedule;
  RunKernel run;  // scheduled
  Pin pin;
  std::string problem = {};  // why a record or a pin cannot be used; "": no problem
  // Why the default schedule, by a bug, does not apply and the plain one replaces it; "": no fault
  std::string fault = {};
};

// Messages about the schedules of a program, one a line.
struct ScheduleRemarks {
  bool in_use = false;  // the user asked for schedules other than the defaults
  std::vector<std::string> warnings, notes;
  std::vector<std::string> faults;  // bugs of default schedules
};

// The schedules of one model for one target. This class has the default ones.
class ModelSchedules {
 public:
  virtual ~ModelSchedules() = default;

  // Layers that must stay exact, named by the value that their product makes.
  virtual std::set<std::string> exact_layers() const { return {}; }
  // Known costs of layouts; null: none. `graph` is the graph as imported.
  virtual Expected<std::unique_ptr<CostOracle>> layout_costs(const Graph& graph,
                                                             const Target& target,
                                                             const AlgorithmOptions& options) const;
  // Adds knowledge of algorithms to the options before the choice for the model's own graph.
  virtual Expected<AlgorithmOptions> algorithms(const Graph& graph,
                                                const std::vector<Group>& groups,
                                                const Target& target,
                                                AlgorithmOptions options) const;
  // Reads the schedules of these groups' kernels for choose(). Called again when groups have
  // changed.
  virtual Error read(const std::vector<FusedGraph>& fused);
  // The schedule of a kernel on the target or on one of its devices. Thread-safe.
  virtual Expected<ChosenSchedule> choose(const LoweredKernel& kernel, const Target& place) const;
  // True if the kernel's place is settled and is not this device.
  virtual bool placed_elsewhere(const LoweredKernel& kernel, const Target& device) const;
  // Messages about the kernels of a program. Errors: a required schedule is missing.
  virtual Expected<ScheduleRemarks> review(const std::vector<LoweredKernel>& kernels,
                                           const std::vector<ChosenSchedule>& chosen) const;
};

// The plain schedule of every kernel.
class PlainSchedules final : public ModelSchedules {
 public:
  Expected<ChosenSchedule> choose(const LoweredKernel& kernel, const Target& place) const override;
};

// Schedules for any model.
class ScheduleSource {
 public:
  virtual ~ScheduleSource() = default;
  // `model` is the file's path or name; `target` is the target of the compile. Errors: a file that
  // cannot be read.
  virtual Expected<std::unique_ptr<ModelSchedules>> open(const std::string& model,
                                                         const std::map<std::string, int64_t>& dims,
                                                         const SymbolLimitsOf& limits,
                                                         const Target& target) const = 0;
};

}  // namespace tw
