#include "autotune/measure/place.h"

#include <llvm/Config/llvm-config.h>

#include "autotune/measure/local.h"
#include "autotune/measure/spool.h"
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

// Checks what an estimate by LLVM's model needs. Errors: several threads, a target without a clock.
Error can_be_estimated(const Target& target, int threads) {
  if (threads > 1)
    return make_error(
        DiagCode::unsupported,
        "target '{0}' is for {1}, which this machine is not: it is estimated, for one "
        "thread, and {2} are asked for; another machine measures with --worker",
        target.name, arch_name(target.arch()), threads);
  if (target.core.clock <= 0)
    return make_error(DiagCode::unsupported,
                      "target '{0}' is for {1}, which this machine is not: an estimate needs the "
                      "clock of the processor, 'rates: {{clock: ...}}' in its description",
                      target.name, arch_name(target.arch()));
  return Error::success();
}

}  // namespace

Expected<std::unique_ptr<Transport>> MeasuringPlace::process() const {
  if (!timed()) return std::unique_ptr<Transport>();
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

Expected<std::shared_ptr<const CandidateBuilder>> MeasuringPlace::builder(const Task& task) const {
  if (processor) return processor;
  TW_ASSIGN(std::unique_ptr<CandidateBuilder> own,
            device_candidate_builder(*whole, device, constants_of(task.variants.front().lowered)));
  return std::shared_ptr<const CandidateBuilder>(std::move(own));
}

bool MeasuringPlace::runs(const Task& task) const {
  if (!device) return true;
  Error error = runs_on(*device, target(), task.variants.front().lowered);
  const bool refused = bool(error);
  llvm::consumeError(std::move(error));
  return !refused;
}

Error runs_on(const DeviceBackend& backend, const Target& device, const LoweredGroup& lowered) {
  TW_ASSIGN(const Schedule schedule, default_schedule(lowered, device));
  TW_ASSIGN(const RunKernel run, scheduled_run(lowered, schedule, device));
  TW_TRY(backend.supports(run.kernel));
  return backend.accepts(run.kernel, constants_of(run, constants_of(lowered)));
}

Expected<MeasuringPlace> measuring_place(const Target& target, const PlaceRequest& request) {
  MeasuringPlace place;
  place.whole = std::make_shared<const Target>(target);
  place.threads = request.threads, place.jobs = request.jobs, place.worker = request.worker;
  if (!place.worker.empty() && !target.devices.empty())
    return make_error(DiagCode::unsupported,
                      "target '{0}' has a device, and workers measure processors", target.name);
  if (target.devices.empty() && request.estimates && place.worker.empty() &&
      target.arch() != host_target().arch()) {
    TW_TRY(can_be_estimated(target, place.threads));
    TW_ASSIGN(place.estimated, make_backend(target));
    place.model = "LLVM-MCA " LLVM_VERSION_STRING ", " + target.cpu;
    return place;
  }
  if (target.devices.empty()) {
    if (place.worker.empty()) TW_TRY(runs_here(target));
    TW_ASSIGN(place.processor, candidate_builder(target, place.threads, request.tables));
    return place;
  }
  TW_ASSIGN(place.device, make_device_backend(place.target()));
  if (place.predicts_cycles()) return place;
  if (target.devices.size() != 1)
    return make_error(DiagCode::unsupported,
                      "target '{0}' has {1} devices; kernels are measured on one", target.name,
                      target.devices.size());
  place.jobs = place.threads = 1;  // building links, too
  return place;
}

}  // namespace tw
