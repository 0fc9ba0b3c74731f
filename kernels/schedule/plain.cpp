// One rule for all kernels, for references: sums of neighbouring outputs in vector lanes,
// everything else as it is lowered.
#include "kernels/default_schedule.h"
#include "kernels/schedule/builder.h"

namespace tw {

Expected<Schedule> plain_schedule(const Kernel& kernel, const Target& target) {
  ScheduleBuilder s(kernel, target);
  for (const Stmt& store : stores_of(kernel.body)) {
    const std::string& label = store->label;
    std::vector<std::string> nest = s.loops_of(label), spatial = s.spatial_loops_of(label),
                             order = s.reduce_loops_of(label);
    const bool plain = !order.empty() && !spatial.empty() &&
                       spatial.size() + order.size() == nest.size() &&
                       nest[spatial.size() - 1] == spatial.back();
    if (!plain) continue;  // no sum, or steps of a scan
    ScheduleBuilder attempt = s;
    std::string lane = spatial.back();
    const int64_t lanes = target.lanes(dtype_bytes(kernel.buffer(store->buffer).dtype));
    if (attempt.extent(lane).value_or(lanes + 1) > lanes) {
      attempt.split(lane, lanes, Tail::guard, lane + "_o", lane + "_v");
      lane += "_v";
    }
    order.push_back(lane);
    attempt.reorder(order);
    attempt.vectorize(lane);
    if (attempt.sound()) s = std::move(attempt);
  }
  return s.finish();
}

}  // namespace tw
