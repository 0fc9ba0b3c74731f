// A place where kernels of a target get their times: this machine's processor, a device that it
// drives, the worker of another machine, a device whose code generator counts cycles, or LLVM's
// model of a processor that is not at hand.
#pragma once
#include <memory>

#include "autotune/measure.h"
#include "autotune/task.h"
#include "driver/compile/candidate.h"

namespace tw {

struct PlaceRequest {
  int threads = 1;  // threads that candidates run on
  int jobs = 1;     // threads that build them
  // The folder of a worker that measures (autotune/measure/spool.h); then this machine need not be
  // able to run the kernels. Empty: this machine
  std::string worker = {};
  bool estimates = false;        // a processor of another architecture is estimated
  Tables tables = Tables::ours;  // see candidate_builder
};

struct MeasuringPlace {
  std::shared_ptr<const Target> whole;
  std::shared_ptr<const DeviceBackend> device;        // null: a processor
  std::shared_ptr<const CandidateBuilder> processor;  // null: a device, or nothing runs
  std::shared_ptr<const Backend> estimated;           // null: not estimated
  std::string model;                                  // name of the model that estimates
  int threads = 1, jobs = 1;
  std::string worker;

  // Kernels are scheduled for it: the processor or the device.
  const Target& target() const { return whole->main_device(); }
  // True if the code generator knows how long its code takes
  bool predicts_cycles() const { return device && device->predicts_cycles(); }
  bool timed() const { return !estimated && !predicts_cycles(); }  // kernels run
  // A new measuring process; null: nothing runs. For a device it is not pinned, as the driver has
  // threads of its own.
  Expected<std::unique_ptr<Transport>> process() const;
  // Only where kernels run
  Expected<std::shared_ptr<const CandidateBuilder>> builder(const Task& task) const;
  // True if the task runs here by its default schedule
  bool runs(const Task& task) const;
};

// Errors: a processor that this machine cannot stand for, several devices, a device without a back
// end, a device with a worker, an estimate without a clock.
Expected<MeasuringPlace> measuring_place(const Target& target, const PlaceRequest& request);

// Errors: the device does not run the kernel with its default schedule.
Error runs_on(const DeviceBackend& backend, const Target& device, const LoweredGroup& lowered);

}  // namespace tw
