// Pooling: blocked layouts keep a tile of one output row in registers over the window, as depthwise
// convolutions do; other layouts go element by element.
#include <algorithm>

#include "kernels/common/register_tile.h"
#include "kernels/families.h"

namespace tw {
namespace {

constexpr int64_t kTile = 8;      // pixels: neighbouring windows share what they read
constexpr int64_t kMostTaps = 5;  // along the row, unrolled

void schedule_plain(ScheduleBuilder& s, std::vector<std::string> loops) {
  s.compute_at("acc", loops.back());
  std::vector<std::string> reduce = s.reduce_loops_of("acc");
  if (!reduce.empty()) s.decompose("acc", reduce.front());
  loops.pop_back();
  s.parallelize(loops, "yp");
}

}  // namespace

void schedule_pool(ScheduleBuilder& s) {
  std::vector<std::string> loops = s.loops_of("y");
  if (s.extent(loops.back()) != s.target().lanes(4) || loops.size() <= 3)
    return schedule_plain(s, std::move(loops));
  const std::string lane = loops.back(), row = loops[loops.size() - 2];
  const std::string acc_row = "acc_a" + row.substr(1), acc_lane = "acc_a" + lane.substr(1);
  loops.resize(loops.size() - 2);
  const int64_t pixels = s.extent(row).value_or(1),
                most = s.rules() ? most_tile_rows(s.target(), 1) : 2 * s.target().vector_registers;
  const int64_t tile = s.choose("pixels", tile_of(s.extent(row), kTile),
                                counted(1, std::min(pixels, most)));
  if (tile > 1) s.split(row, tile, Tail::guard, "w0", "w1");
  s.compute_at("acc", tile > 1 ? "w0" : row);
  const std::vector<std::string> reduce = s.reduce_loops_of("acc");
  s.accumulate("acc", reduce, {acc_row}, acc_lane);
  s.set_scope("acc", "register");
  s.unroll("w1");
  s.vectorize(lane);
  s.parallelize(loops, "yp");
  s.partition_edges("w0");
  if (reduce.empty()) return;
  for (const char* part : {"", "_a", "_z"})
    if (s.extent(reduce.back() + part).value_or(kMostTaps + 1) <= kMostTaps &&
        s.choose_switch("unroll_taps", true))
      s.unroll(reduce.back() + part);
}

}  // namespace tw
