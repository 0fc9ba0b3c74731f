// Recurrent steps: a panel's sums (all gates of its cells, a few sequences) stay in registers, the cells are updated from there.
// Panels are shared out to the threads in every step.
#include <algorithm>

#include "autotune/spaces/space.h"

namespace tw {
namespace {

// ACC: the stage of the sums; PREFIX: of the loops b, j, l of the nest that reads them.
void map_cells(ScheduleBuilder& s, const std::string& acc, const std::string& prefix) {
  const Kernel& k = s.kernel();
  int64_t lanes = std::max(1, s.target().lanes(dtype_bytes(k.buffer(*k.find_buffer(acc)).dtype)));
  int64_t gates = s.extent(acc + "_g").value_or(1), cells = s.extent(acc + "_l").value_or(1);
  int64_t vectors = std::max<int64_t>(1, gates * cells / lanes);
  // States are read back, so tiles of sequences may not overlap: a divisor of their number.
  int64_t batch = s.extent(prefix + "b").value_or(1), rows = std::min(std::max<int64_t>(1, most_tile_rows(s.target(), vectors)), batch);
  while (batch % rows != 0) --rows;
  std::string row = prefix + "b", lane = prefix + "l", column = acc + "_l";
  if (rows > 1) {
    s.split(row, rows, Tail::guard, prefix + "b0", prefix + "b1");
    row = prefix + "b0";
  }
  bool wide = cells > lanes;
  if (wide) {
    s.split(lane, lanes, Tail::guard, prefix + "lv", prefix + "ll");
    lane = prefix + "ll";
  }
  s.reorder({prefix + "j", row, prefix + "b1", prefix + "lv", lane});
  s.compute_at(acc, s.has_loop(row) ? row : prefix + "j");
  if (wide) {
    s.split(column, lanes, Tail::guard, acc + "_lv", acc + "_ll");
    column = acc + "_ll";
  }
  s.accumulate(acc, {acc + "_k"}, {acc + "_b", acc + "_g", acc + "_lv"}, column);
  s.set_scope(acc, "register");
  s.unroll(prefix + "b1");
  s.unroll(prefix + "lv");
  s.vectorize(lane);
  s.parallelize({prefix + "j", row}, prefix + "jp");
}

}  // namespace

void schedule_recurrent(ScheduleBuilder& s) {
  for (const char* label : {"r", "rn", "h.first", "c.first", "y.lasth", "y.lastc"})
    if (s.has_stage(label)) s.map_nest(label);
  map_cells(s, "acc", s.has_stage("q") ? "q_" : "");
  if (s.has_stage("accn")) map_cells(s, "accn", "");
}

}  // namespace tw
