// Schedules pooling. Blocked layouts keep a tile of one output row in registers over the window, as
// depthwise convolutions do. Other layouts keep a vector along the row; short or free rows go
// element by element.
#include <algorithm>
#include <bit>

#include "kernels/common/register_tile.h"
#include "kernels/pool/pool.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kTile = 8;      // pixels; neighbouring windows share their reads
constexpr int64_t kMostTaps = 5;  // limit of unrolled taps along the row

void schedule_plain(ScheduleBuilder& s, const PoolStages& m) {
  s.compute_at(m.acc, m.y_loops.back());
  const Loops reduce = s.reduce_loops_of(m.acc);
  if (!reduce.empty()) s.decompose(m.acc, reduce.front());
  s.parallelize({m.y_loops.begin(), m.y_loops.end() - 1}, "yp");
}

void unroll_short_taps(ScheduleBuilder& s, const Loops& reduce) {
  if (reduce.empty()) return;
  for (const auto edge : ScheduleBuilder::kEdges) {
    const Loop taps = s.at_edge(reduce.back(), edge);
    if (s.extent(taps).value_or(kMostTaps + 1) <= kMostTaps && s.choose_switch("unroll_taps", true))
      s.unroll(taps);
  }
}

void schedule_rows(ScheduleBuilder& s, const PoolStages& m) {
  constexpr int64_t kLeastLanes = 4;
  const Loop row = m.y_loops.back();
  const int64_t pixels = s.extent(row).value_or(0),
                lanes = s.target().lanes(dtype_bytes(s.buffer(m.acc.buffer()).dtype));
  if (pixels < kLeastLanes || lanes < kLeastLanes || m.y_loops.size() < 2)
    return schedule_plain(s, m);
  const auto widest = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::min(lanes, pixels))));
  const int64_t block = s.choose("lanes", widest, {widest / 2, widest / 4});
  const auto cut = s.split(row, block, pixels % block == 0 ? Tail::guard : Tail::shift, "w0", "w1");
  s.compute_at(m.acc, s.has(cut.outer) ? cut.outer : m.y_loops[m.y_loops.size() - 2]);
  const Loops reduce = s.reduce_loops_of(m.acc);
  s.accumulate(m.acc, reduce, {}, s.moved(m.acc, m.acc_loops.back()));
  s.set_scope(m.acc, "register");
  s.vectorize(cut.inner);
  s.parallelize({m.y_loops.begin(), m.y_loops.end() - 1}, "yp");
  s.partition_edges(cut.outer);
  unroll_short_taps(s, reduce);
}

}  // namespace

void arrange_pool(ScheduleBuilder& s, PoolStages& m) {
  const Loops blocked = s.spatial_loops_of(m.y);
  if (blocked.size() == m.y_loops.size()) return;
  s.block(m.acc.buffer(), 1, *s.extent(blocked.back()));
  m.y_loops = blocked, m.acc_loops = s.spatial_loops_of(m.acc);
}

void schedule_pool(ScheduleBuilder& s, const PoolStages& m) {
  const size_t rank = m.y_loops.size();
  if (s.extent(m.y_loops.back()) != s.target().lanes(4) || rank <= 3) return schedule_rows(s, m);
  const Loop lane = m.y_loops.back(), row = m.y_loops[rank - 2];
  const int64_t pixels = s.extent(row).value_or(1);
  const int64_t most = s.rules() ? most_tile_rows(s.target(), 1) : 2 * s.target().vector_registers;
  const int64_t tile = s.choose("pixels", tile_of(s.extent(row), kTile),
                                counted(1, std::min(pixels, most)));
  ScheduleBuilder::Cut tiles;
  if (tile > 1) tiles = s.split(row, tile, Tail::guard, "w0", "w1");
  s.compute_at(m.acc, tile > 1 ? tiles.outer : row);
  const Loops reduce = s.reduce_loops_of(m.acc);
  s.accumulate(m.acc, reduce, {s.moved(m.acc, m.acc_loops[rank - 2])},
               s.moved(m.acc, m.acc_loops[rank - 1]));
  s.set_scope(m.acc, "register");
  s.unroll(tiles.inner);
  s.vectorize(lane);
  s.parallelize({m.y_loops.begin(), m.y_loops.end() - 2}, "yp");
  s.partition_edges(tiles.outer);
  unroll_short_taps(s, reduce);
}

}  // namespace tw
