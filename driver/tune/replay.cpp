#include "driver/tune/replay.h"

#include "autotune/measure/task_measurer.h"
#include "ir/schedule/schedule.h"
#include "kernels/lower.h"
#include "kernels/schedule/plain.h"

namespace tw {

// The layouts into which a schedule brings the parameters, with the steps that do it
struct ParameterLayouts {
  std::vector<Layout> layouts;
  Schedule steps;
};

static ParameterLayouts layouts_of_parameters(const Kernel& lowered, const Schedule& schedule) {
  ParameterLayouts found;
  for (const Buffer& buffer : lowered.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    Layout& layout = found.layouts.emplace_back();
    for (const step::Block& block : blocks_of(schedule, buffer.name)) {
      layout = {static_cast<int>(block.dim), block.factor};
      found.steps.steps.push_back(block);
    }
  }
  return found;
}

Expected<Kernel> scheduled(const Replay& replay, const Target& target) {
  TW_ASSIGN(const Kernel kernel, parse_kernel(replay.kernel));
  TW_TRY(verify(kernel));
  TW_ASSIGN(const Schedule schedule, parse_schedule(replay.schedule));
  if (definition_hash(kernel, layouts_of_parameters(kernel, schedule).layouts) !=
      replay.kernel_hash)
    return make_error(DiagCode::parse, "the kernel's text is not that of kernel {0}",
                      replay.kernel_hash);
  TW_TRY(check_bounds(kernel, Tables::unknown));
  return apply(kernel, schedule, &target);
}

Expected<MeasureResult> measure_again(const Replay& replay, const Target& target) {
  TW_ASSIGN(const MeasuringPlace place,
            measuring_place(target, {.threads = replay.threads, .tables = Tables::unknown}));
  if (place.device)
    return make_error(DiagCode::unsupported, "kernels of devices cannot be measured again alone");
  TW_ASSIGN(Kernel kernel, scheduled(replay, place.target()));
  TW_ASSIGN(std::shared_ptr<Transport> process, place.process());
  TW_ASSIGN(const Kernel lowered, parse_kernel(replay.kernel));
  TW_ASSIGN(Schedule measured, parse_schedule(replay.schedule));
  TW_ASSIGN(const Schedule simple, plain_schedule(lowered, place.target(),
                                                  layouts_of_parameters(lowered, measured).steps));
  TW_ASSIGN(const RunKernel plain, apply_to_run(lowered, simple, &place.target()));
  Task task;
  task.weights_between = replay.weights_between;
  TaskMeasurer measurer(place, std::move(process), task);
  TW_TRY(measurer.compare_with(0, plain));
  const Candidate candidate{
      {-1, {}},
      std::move(measured),
      std::make_shared<const RunKernel>(take_out_constant_stages(std::move(kernel))),
      0};
  return measurer.measure({&candidate, 1}).front();
}

}  // namespace tw
