// Where kernels of a target are timed: on this machine's processor, or on a device that it drives.
#pragma once
#include <functional>
#include <memory>

#include "autotune/measure/local.h"
#include "autotune/measure/reference.h"
#include "autotune/task.h"
#include "backends/backend.h"

namespace tw {

struct MeasuringPlace {
  const Target* target = nullptr;  // what kernels are scheduled for: the processor, or the device
  std::shared_ptr<const DeviceBackend> device;  // null: the processor
  std::function<Expected<CandidateBuilder>(const Task&)> builder;
  int threads = 1;     // that candidates run on
  std::string worker;  // the folder of another machine's worker; empty: this machine measures
  int jobs = 0;        // that may build at once; 0: any number

  // A process of its own. A device's driver has threads of its own: it is pinned nowhere.
  Expected<std::unique_ptr<Transport>> process() const;
  // Whether the code generator knows how long its code takes: then nothing is timed, and there is
  // no builder.
  bool predicts_cycles() const { return device && device->predicts_cycles(); }
};

// target must outlive the result. worker: who measures instead of this machine, which then need not
// be able to (autotune/measure/spool.h). Errors: a processor that this machine cannot stand for,
// several devices, a device without a back end, a device with a worker.
Expected<MeasuringPlace> measuring_place(const Target& target, int threads,
                                         const std::string& worker = "");

// By its default schedule: success, or why the device does not run it.
Error runs_on(const DeviceBackend& backend, const Target& device, const LoweredGroup& lowered);

}  // namespace tw
