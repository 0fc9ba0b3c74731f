#include "driver/run/time_model.h"

#include <algorithm>
#include <chrono>

namespace tw {
namespace {

constexpr int kMaxRuns = 1000000;  // samples kept

// Calls `once` until the options' number of runs or seconds is reached.
template <class Once>
Error repeat(const TimingOptions& options, const Once& once) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const int most = options.runs > 0 ? options.runs : kMaxRuns;
  for (int i = 0; i < most; ++i) {
    if (options.runs == 0 && i > 0 &&
        std::chrono::duration<double>(Clock::now() - start).count() >= options.seconds)
      break;
    TW_TRY(once());
  }
  return Error::success();
}

}  // namespace

Statistics statistics(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  Statistics s;
  s.min = samples.front();
  s.median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  s.p95 = samples[(n * 95 + 99) / 100 - 1];
  for (const double v : samples) s.mean += v / static_cast<double>(n);
  return s;
}

Expected<std::vector<double>> time_runs(ModelRun& run, const TimingOptions& options) {
  std::vector<double> ms;
  TW_TRY(repeat(options, [&]() -> Error {
    const auto start = std::chrono::steady_clock::now();
    TW_TRY(run.run());
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                     .count());
    return Error::success();
  }));
  return ms;
}

Expected<std::vector<double>> time_calls(ModelRun& run, const TimingOptions& options) {
  const size_t count = static_cast<size_t>(run.api().call_count);
  std::vector<uint64_t> ns(count);
  std::vector<std::vector<double>> samples(count);
  TW_TRY(repeat(options, [&]() -> Error {
    TW_TRY(run.profile(ns));
    for (size_t k = 0; k < count; ++k) samples[k].push_back(static_cast<double>(ns[k]) * 1e-6);
    return Error::success();
  }));
  std::vector<double> out;
  for (std::vector<double>& s : samples) out.push_back(statistics(std::move(s)).median);
  return out;
}

}  // namespace tw
