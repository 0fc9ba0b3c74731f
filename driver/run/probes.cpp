#include "driver/run/probes.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>

#include "backends/backend.h"
#include "support/parallel.h"

namespace tw {
namespace {
constexpr double kProbeSeconds = 0.025;  // least time of each probe
constexpr int kFewestPasses = 8;
}  // namespace

Expected<Probes> Probes::load(const Target& target, const std::vector<std::string>& kernels) {
  TW_ASSIGN(std::unique_ptr<Backend> backend, make_backend(target));
  LinkRequest request;
  for (const std::string& text : kernels) {
    TW_ASSIGN(const Kernel kernel, parse_kernel(text));
    TW_ASSIGN(std::string object, backend->compile_kernel(kernel));
    request.objects.push_back(std::move(object));
    request.exports.push_back(kernel.name);
  }
  TW_ASSIGN(const LinkedImage image, link_shared(request));
  TW_ASSIGN(LoadedLibrary library, LoadedLibrary::load(image));
  return Probes(std::move(library));
}

ProbeKernel Probes::find(const std::string& kernel) const {
  return reinterpret_cast<ProbeKernel>(library_.symbol(kernel));
}

double passes_per_second(int threads, const std::function<void(int thread)>& pass) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates(static_cast<size_t>(threads));
  std::barrier start(threads);
  const auto work = [&](int thread) {
    pass(thread);
    start.arrive_and_wait();
    const auto end = Clock::now() + std::chrono::duration<double>(kProbeSeconds);
    double best = std::numeric_limits<double>::infinity();
    int passes = 0;
    for (auto before = Clock::now(); before < end || passes < kFewestPasses; ++passes) {
      pass(thread);
      const auto after = Clock::now();
      best = std::min(best, std::chrono::duration<double>(after - before).count());
      before = after;
    }
    rates[static_cast<size_t>(thread)] = 1 / best;
  };
  // There are as many pieces as threads, so the barrier gives each thread one.
  llvm::cantFail(parallel_for(threads, static_cast<size_t>(threads), [&](size_t thread) -> Error {
    work(static_cast<int>(thread));
    return Error::success();
  }));
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

Pages::Pages(int64_t lines) {
  constexpr size_t kHuge = size_t{2} << 20;
  const size_t bytes = (static_cast<size_t>(lines) * sizeof(Line) + kHuge - 1) / kHuge * kHuge;
  data_.reset(static_cast<Line*>(std::aligned_alloc(kHuge, bytes)));
  if (!data_) throw std::bad_alloc();
  madvise(data_.get(), bytes, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, bytes);
}

}  // namespace tw
