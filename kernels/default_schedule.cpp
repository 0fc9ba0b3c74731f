#include "kernels/default_schedule.h"

#include "kernels/arranged.h"
#include "kernels/device/attention.h"
#include "kernels/device/tensor_form.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

struct FamilySchedule {
  ScheduleBuilder& s;
  void operator()(const ElementwiseStages&) const { schedule_elementwise(s); }
  void operator()(const ConvStages& m) const { schedule_conv(s, m); }
  void operator()(const WinogradStages& m) const { schedule_winograd(s, m); }
  void operator()(const StrassenStages& m) const { schedule_strassen(s, m); }
  void operator()(const MatMulStages& m) const { schedule_matmul(s, m); }
  void operator()(const TileStages&) const {}  // for targets with axes only
  void operator()(const ReduceStages& m) const { schedule_reduce(s, m); }
  void operator()(const PoolStages& m) const { schedule_pool(s, m); }
  void operator()(const RecurrentStages& m) const { schedule_recurrent(s, m); }
  void operator()(const AttentionStages& m) const { schedule_attention(s, m); }
  void operator()(const StreamingAttentionStages&) const {}  // for targets with axes only
  void operator()(const WinogradTileStages&) const {}        // for targets with axes only
  void operator()(const WindowStages&) const {}              // for targets with axes only
};

// Continues the schedule of an arranged kernel.
Expected<Schedule> family_schedule(const Kernel& kernel, const KernelStages& stages,
                                   const Target& target, Choices* choices) {
  if (!target.axes.empty()) {
    ScheduleBuilder s(kernel, target, choices);
    if (const auto* tiles = std::get_if<TileStages>(&stages))
      return schedule_tiles(s, *tiles), s.finish();
    if (const auto* winograd = std::get_if<WinogradTileStages>(&stages))
      return schedule_winograd_in_tiles(s, *winograd), s.finish();
    if (const auto* windows = std::get_if<WindowStages>(&stages))
      return schedule_windows(s, *windows), s.finish();
    if (const auto* attention = std::get_if<StreamingAttentionStages>(&stages))
      return schedule_attention_in_blocks(s, *attention), s.finish();
    return bound_schedule(kernel, std::get_if<ReduceStages>(&stages), target, choices);
  }
  if (tensor_instruction(target, true)) return tensor_schedule(kernel, target, choices);
  ScheduleBuilder s(kernel, target, choices);
  std::visit(FamilySchedule{s}, stages);
  return s.finish();
}

Expected<Schedule> whole_schedule(const LoweredGroup& lowered, const Target& target,
                                  Choices* choices) {
  TW_ASSIGN(const ArrangedKernel begun, arranged(lowered, target, choices));
  TW_ASSIGN(const Schedule rest, family_schedule(begun.run.kernel, begun.stages, target, choices));
  return continued(begun, rest, choices);
}

}  // namespace

Expected<Schedule> default_schedule(const LoweredGroup& lowered, const Target& target) {
  return whole_schedule(lowered, target, nullptr);
}

Expected<ScheduledKernel> default_kernel(const LoweredGroup& lowered, const Target& target) {
  Choices usual;
  ScheduledKernel out;
  TW_ASSIGN(out.schedule, whole_schedule(lowered, target, &usual));
  if (!usual.scheduled()) {
    TW_ASSIGN(out.run, scheduled_run(lowered, out.schedule, target));
    return out;
  }
  out.run = *usual.scheduled();
  if (Error error = verify(out.run.kernel))
    return make_error(DiagCode::illegal_schedule, "the kernel is not legal: {0}",
                      error_text(std::move(error)));
  return out;
}

Expected<Schedule> chosen_schedule(const LoweredGroup& lowered, const Target& target,
                                   Choices& choices) {
  return whole_schedule(lowered, target, &choices);
}

}  // namespace tw
