// Scheduled kernels in, times out: candidates are built on all cores, then timed alone. The same
// object code is timed once.
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
  MeasureLimits limits = {};  // its best is set from the candidates measured
  int jobs = 1;               // threads that build
  // Jobs handed to the transport at once: 1 where it has one machine, so that each knows the best
  // so far
  int together = 1;
};

class KernelMeasurer {
 public:
  virtual ~KernelMeasurer() = default;
  // A result a scheduled kernel, in order; fewer when it was stopped. Kernels of one call are
  // schedules of the reference's lowered kernel.
  virtual std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const Kernel>> kernels,
                                             const Reference& reference, const StopAsked& stop) = 0;
  std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const Kernel>> kernels,
                                     const Reference& reference) {
    return measure(kernels, reference, nullptr);
  }
};

// On the processor, for one task. Times are medians.
class Measurer : public KernelMeasurer {
 public:
  Measurer(Transport& transport, CandidateBuilder builder, MeasurerOptions options);

  // A candidate whose median would be the best of the task so far has had its outputs compared with
  // the reference's; others have not.
  using KernelMeasurer::measure;
  std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const Kernel>> kernels,
                                     const Reference& reference, const StopAsked& stop) override;

  double best_seconds() const { return best_; }  // infinity: none yet
  struct Counts {
    int64_t candidates = 0, timed = 0, same_code = 0, checked = 0;
  };
  const Counts& counts() const { return counts_; }
  double build_seconds() const { return build_seconds_; }  // wall time
  double measure_seconds() const { return measure_seconds_; }

 private:
  struct Trial;
  std::vector<Trial> compile_all(std::span<const std::shared_ptr<const Kernel>> kernels,
                                 const Reference& reference, const StopAsked& stop);
  std::vector<Trial*> link_new(std::vector<Trial>& trials);
  void time_all(const std::vector<Trial*>& fresh, const StopAsked& stop);
  void check_best(std::vector<Trial*> fresh, const Reference& reference);

  Transport& transport_;
  CandidateBuilder builder_;
  MeasurerOptions options_;
  std::map<std::string, MeasureResult> known_;  // by the hash of code and symbols
  double best_;
  Counts counts_;
  double build_seconds_ = 0, measure_seconds_ = 0;
};

}  // namespace tw
