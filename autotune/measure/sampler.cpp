#include "autotune/measure/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw {
namespace {

// Length of a sample of short runs: well below the scheduler's slices, far above the clock's
// resolution.
constexpr double kSampleSeconds = 1e-3;
constexpr double kBlockSeconds = 1e-2;  // longest block, unless one sample takes longer
constexpr int kBlockSamples = 5;
constexpr int kRetries = 3;  // retries of one block
constexpr int kAllRetries = 12;
// The sentinel is compared with its fastest time in this job, as clocks differ between kernels and
// jobs.
constexpr double kSlowerNow = 1.1;
constexpr double kSlowerEver = 1.3;  // compared with an undisturbed machine
// Seconds per involuntary switch that count as the machine's housekeeping
constexpr double kSwitchSeconds = 0.02;

class Sampler {
 public:
  Sampler(const MeasureLimits& limits, double usual, llvm::function_ref<double(int64_t)> run,
          llvm::function_ref<Probe()> probe)
      : limits_(limits), usual_(usual), run_(run), probe_(probe) {}

  Samples sample(double first) {
    spent_ = first;
    if (!calibrate(first)) return {{first}, false};
    before_ = probe_();
    least_sentinel_ = before_.sentinel;
    do { take_block(); } while (!done());
    return std::move(samples_);
  }

 private:
  double timed(int64_t runs) {
    const double seconds = run_(runs);
    spent_ += seconds;
    return seconds;
  }
  bool fits(double seconds) const { return spent_ + seconds <= limits_.timeout; }

  // Finds the number of runs in a sample. False: the first run has used up the time.
  bool calibrate(double first) {
    if (!fits(first)) return false;
    int64_t runs = 1;
    double seconds = timed(1);
    while (seconds < kSampleSeconds / 4 && fits(2 * seconds)) seconds = timed(runs *= 2);
    runs_ = std::max<int64_t>(
        1, static_cast<int64_t>(
               std::ceil(static_cast<double>(runs) * kSampleSeconds / std::max(seconds, 1e-9))));
    sample_seconds_ = seconds / static_cast<double>(runs) * static_cast<double>(runs_);
    return true;
  }

  bool disturbed(const Probe& before, const Probe& after, double seconds) {
    least_sentinel_ = std::min(least_sentinel_, after.sentinel);
    const double slowest = std::max(before.sentinel, after.sentinel);
    const auto housekeeping = static_cast<int64_t>(seconds / kSwitchSeconds);
    return after.switches - before.switches > housekeeping ||
           slowest > kSlowerNow * least_sentinel_ || slowest > kSlowerEver * usual_;
  }

  void take_block() {
    const int left = limits_.most_samples - static_cast<int>(samples_.seconds.size());
    const int count = std::clamp(static_cast<int>(kBlockSeconds / std::max(sample_seconds_, 1e-9)),
                                 1, std::min(kBlockSamples, std::max(left, 1)));
    for (int attempt = 0;; ++attempt) {
      std::vector<double> block;
      double seconds = 0;
      do {
        const double sample = timed(runs_);
        seconds += sample;
        block.push_back(std::max(sample / static_cast<double>(runs_), 1e-12));
      } while (static_cast<int>(block.size()) < count && fits(sample_seconds_));
      const Probe after = probe_();
      const bool bad = disturbed(before_, after, seconds);
      before_ = after;
      const double usual = sample_seconds_ * count;
      // Time in which others ran does not count against the candidate.
      if (bad) spent_ -= std::max(0.0, seconds - 2 * usual);
      if (bad && attempt < kRetries && retries_ < kAllRetries && fits(usual)) {
        ++retries_;
        continue;
      }
      samples_.contended |= bad;
      if (!bad) fastest_ = std::min(fastest_, *std::ranges::min_element(block)), ++blocks_;
      samples_.seconds.insert(samples_.seconds.end(), block.begin(), block.end());
      sampled_ += seconds;
      return;
    }
  }

  // True when the fastest run is slower than the best candidate by more than the doubt that the
  // number of blocks leaves: a factor of 2, 1.25, 1.11, 1.06 and so on.
  bool clearly_slower() const {
    return limits_.best > 0 && blocks_ > 0 &&
           fastest_ > limits_.best * (1 + 1.0 / (blocks_ * blocks_));
  }

  bool done() const {
    const int count = static_cast<int>(samples_.seconds.size());
    if (clearly_slower() || count >= limits_.most_samples || !fits(sample_seconds_)) return true;
    if (count < kLeastSamples || sampled_ < limits_.least_time) return false;
    const MedianInterval interval = median_interval(samples_.seconds);
    return interval.high - interval.low <= limits_.relative_interval * median_of(samples_.seconds);
  }

  const MeasureLimits& limits_;
  double usual_;
  llvm::function_ref<double(int64_t)> run_;
  llvm::function_ref<Probe()> probe_;
  Samples samples_;
  Probe before_;
  double spent_ = 0, sampled_ = 0, sample_seconds_ = 0, least_sentinel_ = 0;
  int64_t runs_ = 1;
  double fastest_ = std::numeric_limits<double>::infinity();  // in undisturbed blocks
  int blocks_ = 0, retries_ = 0;                              // blocks_ counts undisturbed ones
};

}  // namespace

Samples take_samples(const MeasureLimits& limits, double first, double usual_sentinel,
                     llvm::function_ref<double(int64_t)> run, llvm::function_ref<Probe()> probe) {
  if (limits.most_samples == 0) return {};
  return Sampler(limits, usual_sentinel, run, probe).sample(first);
}

}  // namespace tw
