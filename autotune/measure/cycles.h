// Measurers that need no machine: for devices whose code generator knows the time of its code, and
// for estimates of processors. Predicted cycles serve as the time, the same everywhere and in every
// run.
#pragma once
#include <memory>

#include "autotune/measure/session.h"
#include "backends/backend.h"

namespace tw {

class CountingMeasurer : public KernelMeasurer {
 public:
  // Returns one sample for each kernel. Kernels without seconds are compile errors. Outputs are not
  // compared.
  std::vector<MeasureResult> measure(std::span<const std::shared_ptr<const RunKernel>> kernels,
                                     const Reference& reference,
                                     const StopAsked& stop = nullptr) override;

 protected:
  // machine: stands in the results
  CountingMeasurer(std::string machine, int jobs) : machine_(std::move(machine)), jobs_(jobs) {}
  virtual Expected<double> seconds_of(const RunKernel& run) const = 0;

 private:
  std::string machine_;
  int jobs_;
};

// Counts cycles at 100 MHz. The device's own tests cover its outputs.
class CycleMeasurer final : public CountingMeasurer {
 public:
  // `constants` has one for each parameter of the kernels (source empty: not constant), since a
  // device's code may depend on them. They are laid out here, once for all kernels. `device` is the
  // back end's target; results carry its name and hash as their machine. Errors: a constant that
  // cannot be laid out.
  static Expected<std::unique_ptr<CycleMeasurer>> create(
      std::shared_ptr<const DeviceBackend> backend, const Target& device,
      const std::vector<Constant>& constants, int jobs = 1);

  static constexpr double kCycleSeconds = 1e-8;

 private:
  CycleMeasurer(std::shared_ptr<const DeviceBackend> backend, const std::string& machine,
                std::vector<Constant> constants, int jobs)
      : CountingMeasurer(machine, jobs),
        backend_(std::move(backend)),
        constants_(std::move(constants)) {}
  Expected<double> seconds_of(const RunKernel& run) const override;
  std::shared_ptr<const DeviceBackend> backend_;
  std::vector<Constant> constants_;
};

// Estimates processors that are not at hand, by LLVM's models of them.
class EstimateMeasurer final : public CountingMeasurer {
 public:
  // `clock` is in cycles a second.
  EstimateMeasurer(std::shared_ptr<const Backend> backend, const std::string& model, double clock,
                   int jobs = 1)
      : CountingMeasurer(model, jobs), backend_(std::move(backend)), clock_(clock) {}

 private:
  Expected<double> seconds_of(const RunKernel& run) const override;
  std::shared_ptr<const Backend> backend_;
  double clock_;
};

}  // namespace tw
