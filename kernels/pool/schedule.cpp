// Schedules pooling. Blocked layouts keep a tile of one output row in registers over the window, as
// depthwise convolutions do. Other layouts go element by element.
#include <algorithm>

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

}  // namespace

void arrange_pool(ScheduleBuilder& s, PoolStages& m) {
  const Loops blocked = s.spatial_loops_of(m.y);
  if (blocked.size() == m.y_loops.size()) return;
  s.block(m.acc.buffer(), 1, *s.extent(blocked.back()));
  m.y_loops = blocked, m.acc_loops = s.spatial_loops_of(m.acc);
}

void schedule_pool(ScheduleBuilder& s, const PoolStages& m) {
  const size_t rank = m.y_loops.size();
  if (s.extent(m.y_loops.back()) != s.target().lanes(4) || rank <= 3) return schedule_plain(s, m);
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
  if (reduce.empty()) return;
  for (const auto edge : ScheduleBuilder::kEdges) {
    const Loop taps = s.at_edge(reduce.back(), edge);
    if (s.extent(taps).value_or(kMostTaps + 1) <= kMostTaps && s.choose_switch("unroll_taps", true))
      s.unroll(taps);
  }
}

}  // namespace tw
