#include "autotune/measure/cycles.h"

#include <algorithm>

#include "autotune/measure/message.h"
#include "driver/compile/device_program.h"
#include "support/parallel.h"

namespace tw {

std::vector<MeasureResult> CountingMeasurer::measure(
    std::span<const std::shared_ptr<const RunKernel>> kernels, const Reference&, const StopAsked&) {
  std::vector<MeasureResult> results(kernels.size());
  llvm::cantFail(parallel_for(jobs_, kernels.size(), [&](size_t i) -> Error {
    results[i].device = machine_;
    Expected<double> seconds = seconds_of(*kernels[i]);
    if (seconds) {
      results[i].seconds = {*seconds};
      return Error::success();
    }
    results[i].status = Status::compile_error;
    results[i].error = one_line(error_text(seconds.takeError()));
    return Error::success();
  }));
  return results;
}

Expected<std::unique_ptr<CycleMeasurer>> CycleMeasurer::create(
    std::shared_ptr<const DeviceBackend> backend, const Target& device,
    const std::vector<Constant>& constants, int jobs) {
  std::vector<Constant> laid_out;
  for (const Constant& constant : constants) {
    TW_ASSIGN(std::vector<std::byte> bytes, contents(constant));
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    laid_out.push_back({{kept, *kept}, nullptr});
  }
  return std::unique_ptr<CycleMeasurer>(new CycleMeasurer(
      std::move(backend), device.name + " " + codegen_hash(device), std::move(laid_out), jobs));
}

Expected<double> CycleMeasurer::seconds_of(const RunKernel& run) const {
  const Kernel& kernel = run.kernel;
  TW_TRY(backend_->supports(kernel));
  TW_ASSIGN(Program program, device_program(kernel, constants_of(run, constants_), false));
  TW_ASSIGN(const std::vector<KernelReport> reports, backend_->compile(program, 1, 1));
  if (reports.size() != 1 || reports.front().cycles <= 0)
    return make_error(DiagCode::unsupported,
                      "the device's code generator does not say how many cycles kernel '{0}' takes",
                      kernel.name);
  return static_cast<double>(reports.front().cycles) * kCycleSeconds;
}

Expected<double> EstimateMeasurer::seconds_of(const RunKernel& run) const {
  TW_ASSIGN(const KernelEstimate estimate, backend_->estimate(run.kernel, ProcessorModel::own));
  return estimate.cycles / clock_;
}

}  // namespace tw
