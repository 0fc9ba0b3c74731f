// A place to time kernels of a target: this machine's processor, a device that it drives, or the
// worker of another machine.
#pragma once
#include <functional>
#include <memory>

#include "autotune/measure/local.h"
#include "autotune/measure/reference.h"
#include "autotune/task.h"
#include "backends/backend.h"

namespace tw {

struct MeasuringPlace {
  const Target* target = nullptr;  // kernels are scheduled for it: the processor or the device
  std::shared_ptr<const DeviceBackend> device;  // null: the processor
  std::function<Expected<CandidateBuilder>(const Task&)> builder;
  int threads = 1;     // threads that candidates run on
  std::string worker;  // the folder of another machine's worker; empty: this machine measures
  int jobs = 0;        // builds at once; 0: any number

  // A new measuring process. For a device it is not pinned, as the driver has threads of its own.
  Expected<std::unique_ptr<Transport>> process() const;
  // True if the code generator knows how long its code takes. Then nothing is timed, and there is
  // no builder.
  bool predicts_cycles() const { return device && device->predicts_cycles(); }
};

// target must outlive the result. worker: the folder of a worker that measures
// (autotune/measure/spool.h); then this machine need not be able to run the kernels. Errors: a
// processor that this machine cannot stand for, several devices, a device without a back end, a
// device with a worker.
Expected<MeasuringPlace> measuring_place(const Target& target, int threads,
                                         const std::string& worker = "");

// Errors: the device does not run the kernel with its default schedule.
Error runs_on(const DeviceBackend& backend, const Target& device, const LoweredGroup& lowered);

}  // namespace tw
