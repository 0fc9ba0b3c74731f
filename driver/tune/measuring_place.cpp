#include "driver/tune/measuring_place.h"

#include "autotune/measure/spool.h"
#include "driver/tune/candidate.h"
#include "driver/tune/device_candidate.h"
#include "frontend/frontend.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "program/place_groups.h"

namespace tw {
namespace {

Error runs_here(const Target& target) {
  const Target host = host_target();
  if (target.arch() != host.arch())
    return make_error(DiagCode::unsupported,
                      "target '{0}' is for {1}, and kernels are measured on this machine, {2}",
                      target.name, arch_name(target.arch()), arch_name(host.arch()));
  std::string missing;
  for (const std::string& feature : target.features)
    if (!host.has(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty()) return Error::success();
  return make_error(DiagCode::unsupported,
                    "target '{0}' wants features that this machine, where kernels are measured, "
                    "does not have: {1}",
                    target.name, missing);
}

}  // namespace

Expected<std::unique_ptr<Transport>> MeasuringPlace::process() const {
  if (worker.empty()) {
    TW_ASSIGN(std::unique_ptr<Transport> here,
              LocalTransport::create({.threads = device ? 0 : threads}));
    return here;
  }
  TW_ASSIGN(std::unique_ptr<SpoolTransport> there, SpoolTransport::create({.folder = worker}));
  if (there->threads() < threads)
    return make_error(DiagCode::invalid_argument,
                      "{0} threads are to be measured, and the worker of '{1}' has {2}", threads,
                      worker, there->threads());
  return std::unique_ptr<Transport>(std::move(there));
}

Error runs_on(const DeviceBackend& backend, const Target& device, const LoweredGroup& lowered) {
  TW_ASSIGN(const Schedule schedule, default_schedule(lowered, device));
  TW_ASSIGN(const RunKernel run, scheduled_run(lowered, schedule, device));
  TW_TRY(backend.supports(run.kernel));
  return backend.accepts(run.kernel, constants_of(run, constants_of(lowered)));
}

Expected<MeasuringPlace> measuring_place(const Target& target, int threads,
                                         const std::string& worker) {
  MeasuringPlace place;
  place.target = &target.main_device();
  place.threads = threads, place.worker = worker;
  if (!worker.empty() && !target.devices.empty())
    return make_error(DiagCode::unsupported,
                      "target '{0}' has a device, and workers measure processors", target.name);
  if (target.devices.empty()) {
    if (worker.empty()) TW_TRY(runs_here(target));
    TW_ASSIGN(CandidateBuilder builder, candidate_builder(target, threads));
    place.builder = [builder](const Task&) -> Expected<CandidateBuilder> { return builder; };
    return place;
  }
  TW_ASSIGN(std::unique_ptr<DeviceBackend> made, make_device_backend(*place.target));
  place.device = std::move(made);
  if (place.predicts_cycles()) return place;
  if (target.devices.size() != 1)
    return make_error(DiagCode::unsupported,
                      "target '{0}' has {1} devices; kernels are measured on one", target.name,
                      target.devices.size());
  place.jobs = place.threads = 1;  // building links, too
  place.builder = [&target, device = place.device](const Task& task) {
    return device_candidate_builder(target, device, constants_of(task.variants.front().lowered));
  };
  return place;
}

}  // namespace tw
