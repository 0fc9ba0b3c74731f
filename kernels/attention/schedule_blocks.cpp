// Binds the loops of attention in blocks to a device's axes (kernels/attention/blocks.h).
#include <algorithm>

#include "kernels/attention/block_stages.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

class BlockSchedule {
 public:
  BlockSchedule(const Kernel& kernel, const AttentionBlockStages& m, const Target& target,
                Choices* choices)
      : s_(kernel, target, choices), m_(m), target_(target) {
    for (const DeviceAxis& axis : target.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread") axes_.push_back(axis.name);
    }
  }

  Expected<Schedule> run() {
    const std::string memory = block_memory(target_)->name;
    for (const BufferName& buffer : m_.shared) s_.set_scope(buffer, memory);
    for (const BufferName& buffer : m_.own) s_.set_scope(buffer, "stack");
    for (const AttentionBlockStages::Apart& apart : m_.apart)
      s_.storage_align(apart.buffer, 0, 2 * apart.elements, apart.elements);
    for (const AttentionBlockStages::Copy& copy : m_.copies) spread(copy);
    for (const AttentionBlockStages::Instruction& i : m_.instructions)
      s_.tensorize(i.loop, i.intrinsic, i.name);
    for (const Loop& loop : m_.unrolled)
      if (s_.extent(loop).value_or(1) > 1) s_.unroll(loop);
    for (const Loop& loop : m_.vectors) s_.vectorize(loop);
    // Bound last, because every later step must obey the rules of concurrent loops.
    s_.bind(s_.fuse(m_.blocks, "block"), block_);
    for (const Loops& threads : m_.threads) bind_threads(threads);
    for (const Loops& threads : copying_) bind_threads(threads);
    return s_.finish();
  }

 private:
  // The last loop gets the first axis. An axis may have no loop.
  void bind_threads(const Loops& threads) {
    for (size_t i = 0; i < threads.size(); ++i)
      if (threads[i].defined() && s_.has(threads[i]))
        s_.bind(threads[i], axes_[threads.size() - 1 - i]);
  }

  // Deals a copy out to the threads, in vectors where elements are adjacent.
  void spread(const AttentionBlockStages::Copy& copy) {
    const std::string& label = copy.stage.label();
    Loops own = copy.loops;
    Loop lane;
    int64_t points = 1;
    for (const Loop& loop : own) points *= s_.extent(loop).value_or(1);
    const int64_t vector = std::max<int64_t>(
        1, target_.lanes(dtype_bytes(s_.buffer(copy.stage.buffer()).dtype)));
    if (points % (vector * m_.thread_count) == 0 &&
        side_by_side(s_, copy.stage, own.back(), vector)) {
      const auto cut = s_.split(own.back(), vector, Tail::guard, label + "_v", label + "_lane");
      own.back() = cut.outer, lane = cut.inner;
    }
    const Loop all = s_.fuse(own, label + "_all");
    const auto dealt = s_.split(all, m_.thread_count, Tail::guard, label + "_turn",
                                label + "_thread");
    s_.reorder({dealt.inner, dealt.outer});
    if (s_.extent(dealt.outer).value_or(1) > kCopiesAtOnce)
      s_.unroll(s_.split(dealt.outer, kCopiesAtOnce, Tail::guard, label + "_turns", label + "_one")
                    .inner);
    else s_.unroll(dealt.outer);
    if (lane.defined()) s_.vectorize(lane);
    if (m_.threads.front().size() == 1) return copying_.push_back({dealt.inner});
    const auto lanes = s_.split(dealt.inner, s_.extent(m_.threads.front().back()).value_or(1),
                                Tail::guard, label + "_warp", label + "_own");
    copying_.push_back({lanes.outer, lanes.inner});
  }

  ScheduleBuilder s_;
  const AttentionBlockStages& m_;
  const Target& target_;
  std::string block_;
  std::vector<std::string> axes_;
  std::vector<Loops> copying_;  // the copies' loops over them
};

}  // namespace

Expected<Schedule> attention_block_schedule(const Kernel& kernel, const AttentionBlockStages& m,
                                            const Target& target, Choices* choices) {
  return BlockSchedule(kernel, m, target, choices).run();
}

}  // namespace tw
