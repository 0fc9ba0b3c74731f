// Measurers that need no machine: for devices whose code generator knows the time of its code, and
// for estimates of processors. Predicted cycles serve as the time, the same everywhere and in every
// run.
#pragma once
#include <memory>

#include "autotune/measure/session.h"
#include "backends/backend.h"

namespace tw {

class CycleMeasurer : public KernelMeasurer {
 public:
  // `constants` has one for each parameter of the kernels (source empty: not constant), since a
  // device's code may depend on them. They are laid out here, once for all kernels. `device` is the
  // back end's target; results carry its name and hash as their machine. Errors: a constant that
  // cannot be laid out.
  static Expected<std::unique_ptr<CycleMeasurer>> create(
      std::shared_ptr<const DeviceBackend> backend, const Target& device,
      const std::vector<Constant>& constants, int jobs = 1);
  // Returns one sample for each kernel: cycles at 100 MHz. Kernels that the device cannot run are
  // compile errors. Outputs are not compared: the device's own tests cover them.
  using KernelMeasurer::measure;
  std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const RunKernel>> kernels,
                                     const Reference& reference, const StopAsked& stop) override;

  static constexpr double kCycleSeconds = 1e-8;

 private:
  CycleMeasurer(std::shared_ptr<const DeviceBackend> backend, std::string device,
                std::vector<Constant> constants, int jobs)
      : backend_(std::move(backend)),
        device_(std::move(device)),
        constants_(std::move(constants)),
        jobs_(jobs) {}
  Expected<double> seconds_of(const RunKernel& run) const;
  std::shared_ptr<const DeviceBackend> backend_;
  std::string device_;
  std::vector<Constant> constants_;
  int jobs_;
};

// Estimates processors that are not at hand, by LLVM's models of them.
class EstimateMeasurer : public KernelMeasurer {
 public:
  // `clock` is in cycles a second.
  EstimateMeasurer(std::shared_ptr<const Backend> backend, std::string model, double clock,
                   int jobs = 1);
  // Returns one sample for each kernel. Kernels that cannot be estimated are compile errors.
  using KernelMeasurer::measure;
  std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const RunKernel>> kernels,
                                     const Reference& reference, const StopAsked& stop) override;

 private:
  std::shared_ptr<const Backend> backend_;
  std::string model_;
  double clock_;
  int jobs_;
};

}  // namespace tw
