// Takes scheduled kernels and gives their times. Candidates are built on all cores and then timed
// alone. Equal object code is timed once.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autotune/measure/reference.h"

namespace tw {

struct MeasurerOptions {
  MeasureLimits limits = {};  // limits.best comes from the measured candidates
  int jobs = 1;               // threads that build
};

class KernelMeasurer {
 public:
  virtual ~KernelMeasurer() = default;
  // Returns a result for each scheduled kernel, in order; fewer when it was stopped. All kernels of
  // one call are schedules of the reference's lowered kernel.
  virtual std::vector<MeasureResult> measure(
      std::span<const std::shared_ptr<const RunKernel>> kernels, const Reference& reference,
      const StopAsked& stop = nullptr) = 0;
};

// Measures on the processor, for one task. Times are medians.
class Measurer : public KernelMeasurer {
 public:
  // Both must outlive the measurer.
  Measurer(Transport& transport, const CandidateBuilder& builder, MeasurerOptions options);

  // Outputs are compared with the reference's only when a candidate's median would be the best of
  // the task so far.
  std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const RunKernel>> kernels,
                                     const Reference& reference,
                                     const StopAsked& stop = nullptr) override;

  double best_seconds() const { return best_; }  // infinity: no time yet
  struct Counts {
    int64_t candidates = 0, timed = 0, same_code = 0, checked = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Trial;
  std::vector<Trial> compile_all(std::span<const std::shared_ptr<const RunKernel>> kernels,
                                 const Reference& reference, const StopAsked& stop);
  std::vector<Trial*> link_new(std::vector<Trial>& trials);
  void time_all(const std::vector<Trial*>& fresh, const StopAsked& stop);
  void check_best(std::vector<Trial*> fresh, const Reference& reference);

  Transport& transport_;
  const CandidateBuilder& builder_;
  MeasurerOptions options_;
  std::map<std::string, MeasureResult> known_;  // results by the hash of code and symbols
  double best_;
  Counts counts_;
};

}  // namespace tw
