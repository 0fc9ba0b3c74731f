// Schedules recurrent steps. All sums of a step come first. A panel's sums (all gates of its cells,
// for a few sequences) stay in registers, so the stream of weights does not stop for the cells. In
// every step, threads share first the panels, then the cells.
#include "kernels/recurrent/recurrent.h"

#include <algorithm>

#include "kernels/common/register_tile.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

// Sequences whose sums over one panel stay in registers: a divisor of the batch
int64_t rows_of(const ScheduleBuilder& s, const RecurrentStages::Phase& p, int64_t vectors) {
  const int64_t fit = std::max<int64_t>(1, most_tile_rows(s.target(), vectors));
  const int64_t batch = s.extent(p.batch).value_or(1);
  int64_t rows = std::min(fit, batch);
  while (batch % rows != 0) --rows;
  if (!s.extent(p.batch)) return rows;
  return s.choose("rows_" + p.sums.label(), rows, divisors(batch, s.rules() ? fit : batch));
}

void map_sums(ScheduleBuilder& s, const RecurrentStages::Phase& p, int64_t lanes,
              const std::string& name, const SumInstruction& instruction) {
  const int64_t gates = s.extent(p.gate).value_or(1), cells = s.extent(p.lane).value_or(1);
  const int64_t vectors = std::max<int64_t>(1, gates * cells / lanes);
  const int64_t rows = rows_of(s, p, vectors);
  const Stage sum = s.cache_write(p.sums, name, "register");
  // The stage that copies the sums out of the registers
  const Loop block = s.moved(p.sums, p.cell), gate = s.moved(p.sums, p.gate);
  ScheduleBuilder::Cut row{s.moved(p.sums, p.batch), {}}, lane{{}, s.moved(p.sums, p.lane)};
  const std::string batch_name = row.outer.name(), lane_name = lane.inner.name();
  if (rows > 1) row = s.split(row.outer, rows, Tail::guard, batch_name + "0", batch_name + "1");
  if (cells > lanes)
    lane = s.split(lane.inner, lanes, Tail::guard, lane_name + "v", lane_name + "l");
  s.reorder({block, row.outer, row.inner, gate, lane.outer, lane.inner});
  s.compute_at(sum, s.has(row.outer) ? row.outer : block);

  ScheduleBuilder::Cut column{{}, s.moved(sum, p.lane)};
  const std::string column_name = column.inner.name();
  if (cells > lanes)
    column = s.split(column.inner, lanes, Tail::guard, column_name + "v", column_name + "l");
  s.accumulate(sum, {p.depth}, {s.moved(sum, p.batch), s.moved(sum, p.gate), column.outer},
               column.inner, instruction);
  s.set_scope(sum, "register");
  const Loop depth = instruction.defined() ? s.unroll_steps(p.depth, instruction)
                                           : s.unroll_part(p.depth);
  if (const int64_t ahead = s.choose("prefetch_" + p.sums.label(), 0, {4, 8, 16}); ahead > 0)
    s.prefetch_weights(p.weights, depth, ahead);
  s.unroll({row.inner, gate, lane.outer});
  s.vectorize(lane.inner);
  s.parallelize({block, row.outer}, block.name() + "p");
}

void map_cells(ScheduleBuilder& s, const RecurrentStages::Cells& c, int64_t lanes) {
  ScheduleBuilder::Cut lane{{}, c.lane};
  const std::string name = c.lane.name();
  if (s.extent(c.lane).value_or(1) > lanes)
    lane = s.split(c.lane, lanes, Tail::guard, name + "v", name + "l");
  s.reorder({c.cell, c.batch, lane.outer, lane.inner});
  s.unroll(lane.outer);
  s.vectorize(lane.inner);
  s.parallelize({c.cell, c.batch}, c.cell.name() + "p");
}

// Schedules the rounding with vectors of lanes and one thread: a step has few states, and sums of
// computed weights are made only once.
void map_rounding(ScheduleBuilder& s, const RecurrentStages& m) {
  for (const RecurrentStages::Range& end : m.ends)
    s.accumulate(end.stage, end.reduce, {}, end.lane);
  if (!m.rounded.defined()) return;
  const int64_t lanes = std::max(1, s.target().lanes(dtype_bytes(DType::f32)));
  const std::string name = m.rounded_cell.name();
  Loop along = m.rounded_cell;
  if (s.extent(along).value_or(0) > lanes)
    along = s.split(along, lanes, Tail::guard, name + "_o", name + "_v").inner;
  s.vectorize(along);
}

}  // namespace

void schedule_recurrent(ScheduleBuilder& s, const RecurrentStages& m) {
  s.map_nests(m.copies);
  map_rounding(s, m);
  for (size_t i = 0; i < m.phases.size(); ++i) {
    const RecurrentStages::Phase& p = m.phases[i];
    const DType type = s.buffer(p.sums.buffer()).dtype;
    const int64_t lanes = std::max(1, s.target().lanes(dtype_bytes(type)));
    map_sums(s, p, lanes, i == 0 ? "sum" : "sumn", m.instruction);
    map_cells(s, p.cells, lanes);
  }
}

}  // namespace tw
