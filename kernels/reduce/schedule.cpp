// Schedules reductions and normalisations. If the output's rows enclose the reduction, every stage
// of a row runs inside the loop over rows, or over blocks of short rows, and its temps stay in
// registers or on the stack. Otherwise each stage is a nest of its own.
#include <algorithm>

#include "kernels/reduce/reduce.h"
#include "kernels/schedule/builder.h"

namespace tw {

bool ReduceStages::is_part(const Stage& stage) const { return total_of(stage).defined(); }

Stage ReduceStages::total_of(const Stage& part) const {
  const auto found = std::ranges::find(reductions, part, &Reduction::part);
  return part.defined() && found != reductions.end() ? found->total : Stage();
}

bool ReduceStages::has_parts() const {
  return std::ranges::any_of(reductions, [](const Reduction& r) { return r.part.defined(); });
}

namespace {

constexpr int64_t kStackBytes = 32 << 10;
// Rows of at most this length are computed several at once. A single short row would wait for the
// sum over its lanes.
constexpr int64_t kShortRow = 1024, kShortRows = 4;

// Schedules partial results in vector lanes, which the stage of the total combines.
void map_partial(ScheduleBuilder& s, const ReduceStages& m, const Stage& part, bool in_registers) {
  const Loops reduce = s.reduce_loops_of(part), all = s.loops_of(part);
  if (reduce.empty()) return;
  const auto first = std::ranges::find(all, reduce.front());
  if (first == all.begin()) return;
  s.accumulate(part, reduce, {}, *(first - 1));
  s.unroll_part(reduce.back());
  if (!in_registers) return;
  s.set_scope(part, "register");
  for (const Loop& loop : s.reduce_loops_of(m.total_of(part))) s.vectorize(loop);
}

// Runs vectors along a row's values if there are enough of them. Knob "vectors_" + label.
void vectorize_row(ScheduleBuilder& s, const Stage& stage, const Loop& lane) {
  const std::string& label = stage.label();
  const int64_t lanes = s.target().lanes(4) * s.choose("vectors_" + label, 1, {2, 4});
  if (s.extent(lane).value_or(0) < lanes) return;
  s.vectorize(s.split(lane, lanes, Tail::shift, label + "_o", label + "_v").inner);
}

// Moves every stage of a row into the row's loop, or every stage of a block of rows into the loop
// over blocks. `rows` are loops of y. False: one row of y does not read one row of every stage, or
// the values of a row do not fit.
bool all_in_rows(ScheduleBuilder& s, const ReduceStages& m, const Loops& rows, bool blocked) {
  if (m.exponentials.defined()) {
    const auto n = as_const(s.buffer(m.exponentials.buffer()).shape.back());
    if (!n || *n * 4 > kStackBytes) return false;
  }
  const Stages stages = s.stages();
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
    if (*stage != m.y) s.compute_at(*stage, rows.back());
  ScheduleBuilder probe = s;
  if (Expected<Schedule> result = probe.finish(); !result) {
    llvm::consumeError(result.takeError());
    return false;
  }
  const size_t own = blocked ? 1 : 0;
  return std::ranges::all_of(m.reductions, [&](const Reduction& r) {
    return !r.part.defined() || s.spatial_loops_of(r.total).size() <= rows.size() + own;
  });
}

// Rows of y that are computed together, so that each core still has some
int64_t rows_together(const ScheduleBuilder& s, const Loops& rows, const Loop& column) {
  const int64_t last = s.extent(rows.back()).value_or(1);
  int64_t usual = 1;
  if (s.extent(column).value_or(kShortRow + 1) <= kShortRow) {
    int64_t all = 1;
    for (const Loop& loop : rows) all *= s.extent(loop).value_or(1);
    usual = std::clamp<int64_t>(all / s.target().cores, 1, kShortRows);
  }
  return std::min(last, s.choose("block_rows", std::min(usual, last), {1, 2, 4, 8}));
}

bool schedule_rows(ScheduleBuilder& kept, const ReduceStages& m) {
  ScheduleBuilder s = kept;
  Loops rows = s.loops_of(m.y);
  if (!m.has_parts() || rows.size() < 2) return false;
  const Loop column = rows.back();
  rows.pop_back();
  if (!s.choose_switch("rows_inside", true)) return false;
  const int64_t together = rows_together(s, rows, column);
  if (together > 1) {
    const auto cut = s.split(rows.back(), together, Tail::shift, "y_block", "y_row");
    rows.back() = cut.outer;
  }
  if (!all_in_rows(s, m, rows, together > 1)) return false;
  const Stages stages = s.stages();
  for (const Stage& stage : stages)
    if (m.is_part(stage)) map_partial(s, m, stage, true);
  if (m.exponentials.defined()) vectorize_row(s, m.exponentials, s.loops_of(m.exponentials).back());
  vectorize_row(s, m.y, column);
  for (const Stage& stage : stages) {
    const Loops loops = s.spatial_loops_of(stage);
    if (together > 1 && loops.size() > rows.size()) s.unroll(loops[rows.size()]);
  }
  s.parallelize(rows, "yp");
  kept = s;
  return true;
}

constexpr int64_t kVectorsOfPiece = 4;

// Schedules a reduction over outer axes. Lanes run along the last remaining axis.
void map_outer(ScheduleBuilder& s, const Stage& stage) {
  const std::string& label = stage.label();
  Loops spatial = s.spatial_loops_of(stage);
  const Loops reduce = s.reduce_loops_of(stage);
  const Loop lane = spatial.back();
  const auto n = s.extent(lane);
  // Rows that lie far apart are read in longer pieces, if every core still has some.
  const int64_t one = s.target().lanes(4);
  const int64_t pieces = n.value_or(0) / (kVectorsOfPiece * one);
  const int64_t usual = pieces >= 2 * s.target().cores ? kVectorsOfPiece : 1;
  const int64_t lanes = one * s.choose("vectors_" + label, usual, {1, 2, 4, 8});
  if (n == lanes) {
    spatial.pop_back();
    s.accumulate(stage, reduce, {}, lane);
  } else if (!n || *n > lanes) {
    // Shifted tiles would add some elements twice.
    const auto cut = s.split(lane, lanes, Tail::guard, label + "_o", label + "_v");
    spatial.back() = cut.outer;
    s.accumulate(stage, reduce, {}, cut.inner);
  }
  s.parallelize(spatial, label + "_rows");  // label_p0, label_p1, .. are loops of the partial sums
}

}  // namespace

// Partial results of a row: the lanes of a vector. For rows that are long, or multiples of more,
// those of four vectors, whose additions overlap.
static int64_t partial_sums(int64_t lanes, std::optional<int64_t> extent) {
  const bool wide = extent &&
                    (*extent >= 16 * lanes || (*extent >= 8 * lanes && *extent % (4 * lanes) == 0));
  return wide ? 4 * lanes : lanes;
}

// True: the stage reads along the last axis of its results, and not along the one that it combines.
static bool reads_across(const ScheduleBuilder& s, const Stage& stage) {
  const Loops spatial = s.spatial_loops_of(stage), reduce = s.reduce_loops_of(stage);
  return !spatial.empty() && !reduce.empty() && !s.reads_along(stage, reduce.back()) &&
         s.reads_along(stage, spatial.back());
}

// Partial results lie in the lanes of vectors, which run along memory, unless a row is shorter.
static void cut_in_lanes(ScheduleBuilder& s, Reduction& r) {
  const Loop loop = s.reduce_loops_of(r.total).back();
  const std::optional<int64_t> extent = s.extent(loop);
  const DType type = s.buffer(r.total.buffer()).dtype;
  const int64_t lanes = partial_sums(s.target().lanes(dtype_bytes(type)), extent);
  if (extent && *extent < lanes) return;
  const std::string& name = r.total.label();
  const auto cut = s.split(loop, lanes, Tail::guard, loop.name(), name + "_l");
  r.part = s.rfactor(r.total, cut.inner, name + "_part");
}

void arrange_reduce(ScheduleBuilder& s, ReduceStages& m) {
  // A softmax stores its exponentials along the axis that it combines.
  for (Reduction& reduction : m.reductions)
    if (m.exponentials.defined() || !reads_across(s, reduction.total)) cut_in_lanes(s, reduction);
  if (!m.blocks.plain()) s.block(m.reduced.buffer(), m.blocks.axis, m.blocks.block, "al");
  m.blocks = {};
}

void schedule_reduce(ScheduleBuilder& s, const ReduceStages& m) {
  if (schedule_rows(s, m)) return;
  for (const Stage& stage : s.stages()) {
    if (m.is_part(stage)) map_partial(s, m, stage, false);
    else if (s.reduce_loops_of(stage).empty()) s.map_nest(stage);
    else if (stage == m.reduced ? !s.spatial_loops_of(stage).empty() : reads_across(s, stage))
      map_outer(s, stage);
  }
}

}  // namespace tw
