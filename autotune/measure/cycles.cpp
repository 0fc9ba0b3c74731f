#include "autotune/measure/cycles.h"

#include <algorithm>

#include "autotune/measure/device_program.h"
#include "support/parallel.h"

namespace tw {
CycleMeasurer::CycleMeasurer(std::shared_ptr<const DeviceBackend> backend, const Target& device,
                             std::vector<Constant> constants, int jobs)
    : backend_(std::move(backend)),
      device_(device.name + " " + codegen_hash(device)),
      constants_(std::move(constants)),
      jobs_(jobs) {}

std::vector<MeasureResult> CycleMeasurer::measure(
    std::span<const std::shared_ptr<const Kernel>> kernels, const Reference&, const StopAsked&) {
  std::vector<MeasureResult> results(kernels.size());
  llvm::cantFail(parallel_for(jobs_, kernels.size(), [&](size_t i) -> Error {
    results[i].device = device_;
    Expected<double> seconds = seconds_of(*kernels[i]);
    if (seconds) {
      results[i].seconds = {*seconds};
      return Error::success();
    }
    results[i].status = Status::compile_error;
    results[i].error = error_text(seconds.takeError());
    std::ranges::replace(results[i].error, '\n', ' ');
    return Error::success();
  }));
  return results;
}

Expected<double> CycleMeasurer::seconds_of(const Kernel& kernel) const {
  TW_TRY(backend_->supports(kernel));
  TW_ASSIGN(Program program, device_program(kernel, constants_, false));
  TW_ASSIGN(const std::vector<KernelReport> reports, backend_->compile(program, 1, 1));
  if (reports.size() != 1 || reports.front().cycles <= 0)
    return make_error(DiagCode::unsupported,
                      "the device's code generator does not say how many cycles kernel '{0}' takes",
                      kernel.name);
  return static_cast<double>(reports.front().cycles) * kCycleSeconds;
}

}  // namespace tw
