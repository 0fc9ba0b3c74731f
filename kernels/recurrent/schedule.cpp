// Recurrent steps: all sums of a step first, a panel's (all gates of its cells, a few sequences) in
// registers, so that the stream of weights does not stop for the cells. Panels, then cells are
// shared out to the threads in every step.
#include <algorithm>

#include "kernels/common/register_tile.h"
#include "kernels/families.h"

namespace tw {
namespace {

// ACC: the stage of the sums; its loops begin with P.
void map_sums(ScheduleBuilder& s, const std::string& acc, const std::string& p) {
  const Kernel& k = s.kernel();
  int64_t lanes = std::max(1, s.target().lanes(dtype_bytes(k.buffer(*k.find_buffer(acc)).dtype)));
  int64_t gates = s.extent(p + "g").value_or(1), cells = s.extent(p + "l").value_or(1);
  int64_t vectors = std::max<int64_t>(1, gates * cells / lanes);
  int64_t batch = s.extent(p + "b").value_or(1),
          rows = std::min(std::max<int64_t>(1, most_tile_rows(s.target(), vectors)), batch);
  while (batch % rows != 0) --rows;
  const int64_t most = s.rules() ? std::max<int64_t>(1, most_tile_rows(s.target(), vectors))
                                 : batch;
  if (s.extent(p + "b")) rows = s.choose("rows_" + acc, rows, divisors(batch, most));
  const std::string sum = acc == "acc" ? "sum" : "sumn", out = acc + "_" + p, in = sum + "_" + p;
  s.cache_write(acc, sum, "register");
  std::string row = out + "b", lane = out + "l", column = in + "l";
  if (rows > 1) {
    s.split(row, rows, Tail::guard, out + "b0", out + "b1");
    row = out + "b0";
  }
  if (cells > lanes) {
    s.split(lane, lanes, Tail::guard, out + "lv", out + "ll");
    lane = out + "ll";
  }
  s.reorder({out + "j", row, out + "b1", out + "g", out + "lv", lane});
  s.compute_at(sum, s.has_loop(row) ? row : out + "j");
  if (cells > lanes) {
    s.split(column, lanes, Tail::guard, in + "lv", in + "ll");
    column = in + "ll";
  }
  std::string depth = p + "k";
  s.accumulate(sum, {depth}, {in + "b", in + "g", in + "lv"}, column);
  s.set_scope(sum, "register");
  s.unroll_part(depth);
  if (const int64_t ahead = s.choose("prefetch_" + acc, 0, {4, 8, 16}); ahead > 0)
    s.prefetch_weights(acc == "acc" ? "r" : "rn", depth, ahead);
  for (const char* loop : {"b1", "g", "lv"}) s.unroll(out + loop);
  s.vectorize(lane);
  s.parallelize({out + "j", row}, out + "jp");
}

// The cells, in a nest over PREFIXb, j, l.
void map_cells(ScheduleBuilder& s, int64_t lanes, const std::string& prefix) {
  std::string lane = prefix + "l";
  if (s.extent(lane).value_or(1) > lanes) {
    s.split(lane, lanes, Tail::guard, prefix + "lv", prefix + "ll");
    lane = prefix + "ll";
  }
  s.reorder({prefix + "j", prefix + "b", prefix + "lv", lane});
  s.unroll(prefix + "lv");
  s.vectorize(lane);
  s.parallelize({prefix + "j", prefix + "b"}, prefix + "jp");
}

}  // namespace

void schedule_recurrent(ScheduleBuilder& s) {
  for (const char* label : {"r", "rn", "h.first", "c.first", "y.lasth", "y.lastc"})
    if (s.has_stage(label)) s.map_nest(label);
  const Kernel& k = s.kernel();
  const int64_t lanes = std::max(
      1, s.target().lanes(dtype_bytes(k.buffer(*k.find_buffer("acc")).dtype)));
  const bool two = s.has_stage("accn");
  map_sums(s, "acc", "a");
  if (two) {
    map_cells(s, lanes, "q_");
    map_sums(s, "accn", "n");
  }
  map_cells(s, lanes, "");
}

}  // namespace tw
