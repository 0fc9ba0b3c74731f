// Schedules Winograd's convolution on a device: three launches, or the launches of the products in
// tiles and two more. A thread transforms a tile of one input channel in its registers and stores
// it for the products. After them, a thread transforms a tile of one output channel.
#include "kernels/device/tiles.h"
#include "kernels/schedule/builder.h"
#include "kernels/winograd/winograd.h"

namespace tw {
namespace {

constexpr int64_t kThreads = 64;  // threads of a block that transforms

class WinogradTileSchedule {
 public:
  WinogradTileSchedule(ScheduleBuilder& s, const WinogradTileStages& m) : s_(s), m_(m) {
    most_ = s.target().max_group;
    for (const DeviceAxis& axis : s.target().axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level != "thread" || !thread_.empty()) continue;
      thread_ = axis.name;
      if (axis.max > 0) most_ = std::min(most_, axis.max);
    }
    for (const int64_t threads : {32, 64, 128, 256})
      if (threads <= most_) counts_.push_back(threads);
  }

  void run() {
    schedule_tiles(s_, m_.products);
    if (!s_.sound()) return;
    transform_input();
    transform_output();
  }

 private:
  void transform_input() {
    const WinogradAxisTransform &rows = m_.rows, &columns = m_.columns;
    hold(rows, columns.tile);
    s_.unroll({columns.fixed, columns.along});
    bind({columns.block, columns.tile}, "in");
  }

  void transform_output() {
    const ConvLoops& y = m_.out.loops;
    const auto [high, line] = s_.split(y.lines[0], m_.tile, Tail::guard, "h0", "h1");
    const auto [wide, column] = s_.split(y.row, m_.tile, Tail::guard, "w0", "w1");
    Loops outer = {y.image, high, wide, y.channel};
    if (y.lane.defined()) outer.push_back(y.lane);
    Loops order = outer;
    order.insert(order.end(), {line, column});
    s_.reorder(order);
    hold(m_.out_columns, outer.back());
    hold(m_.out_rows, outer.back());
    add_parts(s_, m_.products, outer.back());
    s_.unroll({line, column});
    bind(outer, "out");
  }

  // Keeps a transform in the registers of the threads that run the loop's iterations.
  void hold(const WinogradAxisTransform& t, const Loop& loop) {
    s_.compute_at(t.stage, loop);
    s_.set_scope(t.stage, "stack");
    s_.unroll({s_.moved(t.stage, t.fixed), s_.moved(t.stage, t.along)});
  }

  void bind(const Loops& loops, const std::string& name) {
    const int64_t threads = s_.choose("threads_" + name, std::min(kThreads, most_), counts_);
    const auto cut = s_.split(s_.fuse(loops, name + "_tiles"), threads, Tail::guard,
                              name + "_block", name + "_thread");
    s_.bind(cut.inner, thread_);
    s_.bind(cut.outer, block_);
  }

  ScheduleBuilder& s_;
  const WinogradTileStages& m_;
  std::string block_, thread_;
  int64_t most_ = 1;             // threads of a block
  std::vector<int64_t> counts_;  // counts of threads that are offered
};

}  // namespace

void schedule_winograd_in_tiles(ScheduleBuilder& s, const WinogradTileStages& m) {
  WinogradTileSchedule(s, m).run();
}

}  // namespace tw
