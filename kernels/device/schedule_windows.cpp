// Schedules convolutions in windows (kernels/device/windows.h). A block has neighbouring tiles of
// threads along rows, lines and channels, so that neighbours read and write adjacent elements.
// Loops over a thread's outputs are unrolled, and loops over taps as far as straight-line code may
// grow. A thread's sums and its window are in registers.
#include <algorithm>

#include "kernels/device/tiles.h"
#include "kernels/device/window_model.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

// Limits of straight-line code in multiply-adds, and of a thread's estimated registers
constexpr int64_t kMostProducts = 1024, kWindowRegisters = 176;
constexpr int64_t kPackThreads = 64;  // threads of a block that packs weights

class WindowSpace {
 public:
  WindowSpace(ScheduleBuilder& s, const WindowStages& m) : s_(s), m_(m), tile_(m.tile) {
    for (const DeviceAxis& axis : s_.target().axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread" && thread_.empty()) thread_ = axis.name;
    }
  }

  void run() {
    choose();
    if (!s_.sound()) return;
    cut_output();
    s_.compute_at(m_.acc, threads_.back());
    sums();
    if (m_.window.defined()) place_window();
    if (!s_.sound()) return;
    s_.bind(s_.fuse(threads_, "thread"), thread_);
    s_.bind(s_.fuse(blocks_, "block"), block_);
    for (const Stage& stage : s_.stages())
      if (is_other(stage)) deal_out(stage);
  }

 private:
  using Cut = ScheduleBuilder::Cut;

  void choose() {
    const auto offered = [&](const char* knob, int64_t& value, const std::vector<int64_t>& others) {
      value = s_.choose(knob, value, others);
    };
    offered("pixels", tile_.pixels, {1, 2, 3, 4, 5, 6, 7, 8});
    offered("lines", tile_.lines, {1, 2, 3, 4, 5, 6, 7, 8});
    offered("threads_across", tile_.across, {1, 2, 4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128});
    offered("threads_down", tile_.down, {1, 2, 4, 7, 8, 14, 16, 28, 32});
    offered("threads_deep", tile_.deep, {1, 2, 4, 8, 16, 32, 64});
    std::vector<int64_t> places;
    for (const WindowPlace place : kWindowPlaces) places.push_back(static_cast<int64_t>(place));
    tile_.place = static_cast<WindowPlace>(
        s_.choose("window", static_cast<int64_t>(tile_.place), places));
    if (const std::string fault = window_fault(tile_, m_.problem, s_.target()); !fault.empty())
      s_.fail(fault);
    if (s_.rules() && window_registers(tile_, m_.problem) > kWindowRegisters)
      s_.fail("a thread has more sums and elements than registers");
    if (s_.rules() && window_weights(tile_, m_.problem) > kMostWindowWeights)
      s_.fail("a thread has more weights than registers");
  }

  // True: a stage that packs weights that are not constant, in launches of its own.
  bool is_other(const Stage& stage) const {
    return stage != m_.window && stage != m_.acc && stage != m_.out.y &&
           stage != s_.init_of(m_.acc);
  }
  void deal_out(const Stage& stage) {
    const std::string& label = stage.label();
    const Cut cut = s_.split(s_.fuse(s_.loops_of(stage), label + "_all"), kPackThreads, Tail::guard,
                             label + "_block", label + "_thread");
    s_.bind(cut.inner, thread_);
    s_.bind(cut.outer, block_);
  }

  Cut cut(const Loop& loop, int64_t by, const std::string& name) {
    return s_.split(loop, by, Tail::guard, name + "0", name + "1");
  }

  void cut_output() {
    const ConvLoops& y = m_.out.loops;
    const Cut row = cut(y.row, tile_.pixels, "x"), across = cut(row.outer, tile_.across, "u"),
              deep = cut(y.channel, tile_.deep, "c");
    blocks_ = {y.image};
    pixels_ = {row.inner};
    Cut down;
    for (size_t i = 0; i < y.lines.size(); ++i) {
      if (i + 1 < y.lines.size()) {
        blocks_.push_back(y.lines[i]);
        continue;
      }
      const Cut line = cut(y.lines[i], tile_.lines, "h");
      down = cut(line.outer, tile_.down, "v");
      pixels_.insert(pixels_.begin(), line.inner);
    }
    blocks_.push_back(deep.outer);
    if (down.outer.defined()) blocks_.push_back(down.outer);
    blocks_.push_back(across.outer);
    threads_ = {deep.inner};
    if (down.inner.defined()) threads_.push_back(down.inner);
    threads_.push_back(across.inner);
    Loops order = blocks_;
    for (const Loops* part : {&threads_, &pixels_})
      order.insert(order.end(), part->begin(), part->end());
    if (y.lane.defined()) order.push_back(y.lane);
    s_.reorder(order);
    s_.unroll(pixels_);
    s_.vectorize(y.lane);
  }

  void sums() {
    Loops reduce = {m_.channels}, tile;
    reduce.insert(reduce.end(), m_.taps.begin(), m_.taps.end());
    reduce.push_back(m_.channel_lanes);
    std::erase_if(reduce, [&](const Loop& loop) { return !loop.defined() || !s_.has(loop); });
    if (!m_.sums.lines.empty()) tile.push_back(s_.moved(m_.acc, m_.sums.lines.back()));
    tile.push_back(s_.moved(m_.acc, m_.sums.row));
    s_.accumulate(m_.acc, reduce, tile, s_.moved(m_.acc, m_.sums.lane));
    // Unrolls from the inside out, as far as straight-line code may grow.
    const bool by_line = straight_lines(tile_, m_.problem) == 1;
    int64_t products = tile_.pixels * tile_.lines * m_.problem.lanes;
    for (auto loop = reduce.rbegin(); loop != reduce.rend(); ++loop) {
      products *= s_.extent(*loop).value_or(kMostProducts);
      const bool around = *loop == m_.channels || (by_line && *loop == line_taps());
      if (around || products > kMostProducts) break;
      s_.unroll(*loop);
    }
  }

  // The loop over lines of taps; none: there is one line
  Loop line_taps() const { return m_.taps.size() > 1 ? m_.taps[m_.taps.size() - 2] : Loop(); }

  // The loop at which the window is copied: over steps of the channels, or over lines of taps
  Loop window_loop() const {
    if (tile_.place == WindowPlace::block) return blocks_.back();
    Loop at = threads_.back();
    if (m_.channels.defined() && s_.has(m_.channels)) at = m_.channels;
    for (size_t i = 0; i + 2 < m_.taps.size(); ++i)
      if (m_.taps[i].defined()) at = m_.taps[i];
    return tile_.place == WindowPlace::line && line_taps().defined() ? line_taps() : at;
  }

  void place_window() {
    const Loop at = window_loop();
    s_.compute_at(m_.window, at);
    if (!s_.sound()) return;
    Loops own = s_.loops_inside(m_.window, at);
    Loop lane;
    if (m_.problem.loaded > 1 && !own.empty()) lane = own.back(), own.pop_back();
    if (tile_.place == WindowPlace::block) {
      s_.set_scope(m_.window, block_memory(s_.target())->name);
      keep_apart();
      share(own);
    } else {
      s_.set_scope(m_.window, "stack");
      s_.unroll(own);
    }
    s_.vectorize(lane);
  }

  // Arranges a block's window in its memory: [the others.., place, lane].
  void keep_apart() {
    const WindowBanks banks = window_banks(tile_, m_.problem);
    const size_t rank = m_.taps.size(), channel = 1, row = rank + 1, line = rank;
    s_.layout(m_.window.buffer(), [&](const std::vector<Expr>& at) {
      const Expr apart(banks.apart);
      Expr place = at[channel] * Expr(banks.of_channel) +
                   floor_mod(at[row], apart) * Expr(banks.of_phase) + floor_div(at[row], apart);
      if (rank > 1) place = place + at[line] * Expr(banks.of_line);
      std::vector<Expr> all;
      for (size_t d = 0; d < at.size(); ++d)
        if (d == row) all.push_back(place);
        else if (d != channel && (rank == 1 || d != line)) all.push_back(at[d]);
      return all;
    });
  }

  // Lets the threads of a block copy its window together, neighbours next to each other.
  void share(const Loops& own) {
    const Cut dealt = s_.split(s_.fuse(own, "window"), tile_.threads(), Tail::guard, "window_turn",
                               "window_thread");
    s_.reorder({dealt.inner, dealt.outer});
    s_.unroll(dealt.outer);
    s_.bind(dealt.inner, thread_);
  }

  ScheduleBuilder& s_;
  const WindowStages& m_;
  WindowTile tile_;
  std::string block_, thread_;
  Loops blocks_, threads_, pixels_;
};

}  // namespace

void schedule_windows(ScheduleBuilder& s, const WindowStages& m) { WindowSpace(s, m).run(); }

}  // namespace tw
