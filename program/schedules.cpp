#include "program/schedules.h"

#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "kernels/schedule/plain.h"

namespace tw {
namespace {

void use(ScheduledKernel made, ChosenSchedule& chosen) {
  chosen.schedule = std::move(made.schedule), chosen.run = std::move(made.run);
  chosen.pin.schedule = print(chosen.schedule);
}

Error use_plain(const LoweredKernel& kernel, const Target& place, ChosenSchedule& chosen) {
  ScheduledKernel made;
  TW_ASSIGN(const Schedule layouts, laid_out(kernel.lowered, place));
  TW_ASSIGN(made.schedule, plain_schedule(kernel.lowered.kernel, place, layouts));
  TW_ASSIGN(made.run, scheduled_run(kernel.lowered, made.schedule, place));
  use(std::move(made), chosen);
  return Error::success();
}

std::string fault_text(const LoweredKernel& kernel, const ChosenSchedule& chosen) {
  return "kernel " + kernel.lowered.kernel.name +
         (chosen.pin.name.empty() ? "" : " (" + chosen.pin.name + ")") +
         ": the default schedule does not apply (" + chosen.fault +
         "), the plain one is used, which is slower; this is a bug of tilewright: please report it "
         "with 'tilewright reduce'";
}

}  // namespace

const char* source_of(const Pin& pin) {
  return pin.tuned         ? "tuned"
         : pin.transferred ? "transferred"
         : pin.predicted   ? "predicted"
                           : "default";
}

Expected<std::unique_ptr<CostOracle>> ModelSchedules::layout_costs(const Graph&, const Target&,
                                                                   const AlgorithmOptions&) const {
  return nullptr;
}

Expected<AlgorithmOptions> ModelSchedules::algorithms(const Graph&, const std::vector<Group>&,
                                                      const Target&,
                                                      AlgorithmOptions options) const {
  return options;
}

Error ModelSchedules::read(const std::vector<FusedGraph>&) { return Error::success(); }

// If the default schedule does not apply, which is a bug, the processor gets the plain one.
Expected<ChosenSchedule> ModelSchedules::choose(const LoweredKernel& kernel,
                                                const Target& place) const {
  ChosenSchedule chosen;
  const LoweredGroup& lowered = kernel.lowered;
  Expected<ScheduledKernel> made = default_kernel(lowered, place);
  if (made) return use(std::move(*made), chosen), std::move(chosen);
  if (!place.driver.empty()) return made.takeError();
  chosen.fault = error_text(made.takeError());
  chosen.fault.resize(std::min(chosen.fault.find('\n'), chosen.fault.size()));
  TW_TRY(use_plain(kernel, place, chosen));
  return chosen;
}

bool ModelSchedules::placed_elsewhere(const LoweredKernel&, const Target&) const { return false; }

Expected<ScheduleRemarks> ModelSchedules::review(const std::vector<LoweredKernel>& kernels,
                                                 const std::vector<ChosenSchedule>& chosen) const {
  ScheduleRemarks remarks;
  for (size_t k = 0; k < kernels.size(); ++k)
    if (!chosen[k].fault.empty()) remarks.faults.push_back(fault_text(kernels[k], chosen[k]));
  return remarks;
}

Expected<ChosenSchedule> PlainSchedules::choose(const LoweredKernel& kernel,
                                                const Target& place) const {
  ChosenSchedule chosen;
  TW_TRY(use_plain(kernel, place, chosen));
  return chosen;
}

}  // namespace tw
