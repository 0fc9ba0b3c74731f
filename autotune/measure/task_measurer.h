// Builds and measures candidates of one task: everything that times a kernel does it here.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotune/measure/place.h"
#include "autotune/measure/session.h"
#include "autotune/median.h"
#include "autotune/search.h"

namespace tw {

// Gives candidates of a task their times.
class CandidateMeasurer {
 public:
  virtual ~CandidateMeasurer() = default;
  // Returns results of the candidates in order; fewer when it was stopped.
  virtual std::vector<MeasureResult> measure(std::span<const Candidate> candidates,
                                             const StopAsked& stop) = 0;
  // Measures two candidates in turns, a few short runs each. nullopt: one of them does not work, or
  // nothing runs, and a time is the same whenever it is taken.
  virtual std::optional<PairedGain> in_turns(const Candidate& /*by_default*/,
                                             const Candidate& /*tuned*/) {
    return std::nullopt;
  }
};

struct MeasureSettings {
  uint64_t seed = 1;          // seed of the parameters' contents
  MeasureLimits limits = {};  // limits of each candidate
  size_t together = 8;        // candidates between two looks at `stop`
};

class TaskMeasurer final : public CandidateMeasurer {
 public:
  // process: from the place; it may be null where no candidate is measured, but only jobs are made.
  // The place and the task must outlive the measurer.
  TaskMeasurer(const MeasuringPlace& place, std::shared_ptr<Transport> process, const Task& task,
               const MeasureSettings& settings = {});

  // Outputs of the fastest candidates of a variant are compared with those of this schedule.
  // Without it they are compared with those of the default schedule. Where nothing runs, it checks
  // that kernels can be measured at all. Errors: the kernel does not build or run.
  Error compare_with(int variant, const RunKernel& usual);
  std::vector<MeasureResult> measure(std::span<const Candidate> candidates,
                                     const StopAsked& stop = nullptr) override;
  std::optional<PairedGain> in_turns(const Candidate& by_default, const Candidate& tuned) override;
  // Measures equal code anew.
  void forget() { measurer_.reset(); }
  // A job that times the kernel, to run in a process of the caller's choice
  Expected<MeasureJob> job(const RunKernel& run);

 private:
  Expected<const CandidateBuilder*> builder();
  Expected<KernelMeasurer*> measurer();
  Error refer_to_default(int variant);
  Reference inputs(size_t symbols) const;
  std::vector<MeasureResult> measure_variant(std::span<const Candidate> candidates,
                                             const StopAsked& stop);

  const MeasuringPlace& place_;
  std::shared_ptr<Transport> process_;
  const Task& task_;
  MeasureSettings settings_;
  std::shared_ptr<const CandidateBuilder> builder_;
  std::unique_ptr<KernelMeasurer> measurer_;
  std::optional<MeasureJob> usual_job_;  // job of the default schedule, for turns
  std::map<int, Reference> references_;  // by variant
  std::map<int, std::string> failures_;  // reasons why a variant has no reference
};

}  // namespace tw
