// Puts sums of neighbouring outputs in vector lanes and leaves everything else as lowered.
#include "kernels/schedule/plain.h"

#include <algorithm>

#include "kernels/schedule/builder.h"

namespace tw {

Expected<Schedule> plain_schedule(const Kernel& kernel, const Target& target,
                                  const Schedule& first) {
  TW_ASSIGN(const Kernel begun, apply(kernel, first, &target));
  ScheduleBuilder s(begun, target);
  for (const Stage& stage : s.stages()) {
    const Loops nest = s.loops_of(stage), spatial = s.spatial_loops_of(stage);
    Loops order = s.reduce_loops_of(stage);
    const bool plain = !order.empty() && !spatial.empty() &&
                       spatial.size() + order.size() == nest.size() &&
                       nest[spatial.size() - 1] == spatial.back();
    if (!plain) continue;  // not a sum, or steps of a scan
    ScheduleBuilder attempt = s;
    Loop lane = spatial.back();
    const int64_t lanes = target.lanes(dtype_bytes(s.buffer(stage.buffer()).dtype));
    if (attempt.extent(lane).value_or(lanes + 1) > lanes)
      lane = attempt.split(lane, lanes, Tail::guard, lane.name() + "_o", lane.name() + "_v").inner;
    order.push_back(lane);
    attempt.reorder(order);
    attempt.vectorize(lane);
    if (attempt.sound()) s = std::move(attempt);
  }
  TW_ASSIGN(const Schedule rest, s.finish());
  Schedule whole = first;
  std::ranges::copy(rest.steps, std::back_inserter(whole.steps));
  return whole;
}

}  // namespace tw
