// Schedules attention in blocks of query rows. A block's scores stay on the stack and the tiles of
// both products in registers. A panel of keys or values stays in the L1 cache while the block's
// rows pass it.
#include <algorithm>
#include <bit>

#include "kernels/attention/attention.h"
#include "kernels/common/register_tile.h"
#include "kernels/schedule/builder.h"
#include "kernels/schedule/tiles.h"

namespace tw {
namespace {

constexpr int64_t kBlockRows = 16;
constexpr int64_t kStackBytes = 40 << 10;  // limit of the scores and their exponentials
// Bytes of a score, and of an exponential's copy
constexpr int64_t kScoreBytes = 4, kTileBytes = 2;
constexpr int64_t kMostKeys = 2048;  // limit of a row's keys on the stack

// Rows of a register tile over panels of keys, of one over panels of columns, and of the block
// around them
struct Blocking {
  int64_t key_tile, tile, block;
};

class AttentionSchedule {
 public:
  AttentionSchedule(ScheduleBuilder& s, const AttentionStages& m)
      : s_(s), m_(m), lanes_(std::max(1, s.target().lanes(4))) {
    keys_ = as_const(s.buffer(m.scores.buffer()).shape.back());
    in_tiles_ = in_tiles(s.target(), m.key_products.instruction);
    row_bytes_ = kScoreBytes + dtype_bytes(s.buffer(m.exponentials.buffer()).dtype) +
                 (in_tiles_ ? kTileBytes : 0);
    // Otherwise a block's scores lie in the thread's slice of the workspace.
    on_stack_ = keys_ && *keys_ <= kMostKeys &&
                m.block_rows * (row_bytes_ * *keys_ + tile_row_bytes()) <= kStackBytes;
  }

  void run() {
    const Blocking b = choose_blocking();
    const Expr queries = s_.any_extent(m_.row);
    const Loop block = cut_output(b);
    // Attach the block's stages from the last one back to the first: sums, exponentials, scores.
    if (m_.weights.defined()) map_rows(m_.weights, block);
    s_.compute_at(m_.inverse, block);
    const Loop row = s_.moved(m_.inverse, m_.inverse_row);
    if (s_.extent(row) == lanes_) s_.vectorize(row);
    map_total(m_.sum, block);
    const Loop exponentials = cut_part(m_.sum, block, false);
    s_.compute_at(m_.exponentials, exponentials);
    const Loop column = s_.moved(m_.exponentials, m_.exponentials_column);
    const auto steps = s_.split(column, lanes_, Tail::guard, column.name() + "o",
                                column.name() + "l");
    s_.unroll(steps.outer);
    s_.vectorize(steps.inner);
    map_total(m_.top, block);
    const Loop panels = cut_part(m_.top, block, true);
    map_scores(b, panels);
    if (m_.queries.defined()) map_rows(m_.queries, block);
    for (const AttentionStages::Panels* p : {&m_.keys, &m_.values}) {
      if (p->stage.defined()) map_panels(*p);
      if (p->numbers.defined()) map_numbers(*p);
    }
    if (!on_stack_)
      for (const Stage& stage : {m_.scores, m_.exponentials, m_.weights})
        if (stage.defined()) s_.set_scope(stage, "thread");
    Loops outer = m_.batches;
    outer.push_back(block);
    s_.parallelize(outer, "yp");
    // Only the last panel has keys behind the last one. With a mask, any may have some.
    if (!m_.causal)
      for (const Loop& loop : {panels, exponentials}) {
        s_.partition_edges(loop);
        s_.peel_last(loop);
      }
    s_.specialize_one(block, queries);
  }

 private:
  // Bytes of a row's sums and its query, where tile registers leave them on the stack
  int64_t tile_row_bytes() const {
    if (!in_tiles_) return 0;
    return kScoreBytes * (m_.keys.columns + m_.values.columns) +
           kTileBytes * m_.key_products.steps * s_.extent(m_.key_products.depth).value_or(1);
  }

  Blocking choose_blocking() const {
    if (m_.block_rows > 0) return {m_.block_rows, m_.block_rows, m_.block_rows};
    const std::optional<int64_t> all_rows = s_.extent(m_.row);
    const int64_t rows = all_rows.value_or(kFreeRows);
    const int64_t fit = on_stack_ ? std::max<int64_t>(1, kStackBytes / row_bytes_ / *keys_)
                                  : kBlockRows;
    const Target& target = s_.target();
    const auto tile_of = [&](const char* knob, int64_t panel) -> int64_t {
      const int64_t vectors = panel / lanes_, usual = tile_rows(target, vectors, rows);
      if (!all_rows)  // the tile divides the block
        return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(usual, rows))));
      std::vector<int64_t> others;
      const int64_t most = std::min({rows, fit, int64_t{target.vector_registers}});
      for (int64_t n = 1; s_.open() && n <= most; ++n)
        if (!s_.rules() || fits_registers(target, {n, vectors})) others.push_back(n);
      return s_.choose(knob, std::min({usual, rows, fit}), others);
    };
    const int64_t key_tile = tile_of("key_rows", m_.keys.columns);
    const int64_t tile = tile_of("rows", m_.values.columns), larger = std::max(tile, key_tile);
    if (!all_rows) return {key_tile, tile, rows};
    const int64_t usual = std::min(rows,
                                   std::max(larger, std::min(kBlockRows, fit) / larger * larger));
    const int64_t block = s_.choose("block_rows", usual, {4, 6, 8, 12, 16, 24, 32, 48, 64});
    return {key_tile, tile, std::clamp(block, std::min(larger, rows), rows)};
  }

  // Makes the copy in panels, either a panel or all of a batch at a time. Where rows of the operand
  // become columns, registers transpose squares of vectors.
  void map_panels(const AttentionStages::Panels& p) {
    Loops outer = s_.loops_of(p.stage);
    outer.resize(outer.size() - 2);
    const auto whole = [&](const Loop& loop) { return s_.extent(loop).value_or(1) % lanes_ == 0; };
    const auto cut = [&](const Loop& loop) {
      return s_.split(loop, lanes_, Tail::guard, loop.name() + "0", loop.name() + "1");
    };
    if (lanes_ < 2 || !whole(p.lane)) return s_.map_nest(p.stage);
    const auto lane = cut(p.lane);
    if (p.transposes && whole(p.depth)) {
      const auto depth = cut(p.depth);
      Loops order = outer;
      order.insert(order.end(), {lane.outer, depth.outer, depth.inner, lane.inner});
      s_.reorder(order);
      s_.unroll(depth.inner);
    } else {
      s_.unroll(lane.outer);
    }
    s_.vectorize(lane.inner);
    parallelize_panels(outer, p.stage);
  }
  // Only the last panel has columns behind the last one. It is cut off, unless panels are parallel.
  void parallelize_panels(Loops outer, const Stage& stage) {
    const Loop panels = outer.back();
    int64_t batches = 1;
    for (const Loop& loop : outer)
      if (loop != panels) batches *= s_.extent(loop).value_or(s_.target().cores);
    if (batches % s_.target().cores == 0) outer.pop_back();
    const bool alone = outer.size() == 1 && outer.front() == panels;
    s_.parallelize(outer, stage.label() + "_p");
    if (!alone) s_.partition_edges(panels);
  }

  // Copies the panels' numbers for an instruction: vectors of columns, with the neighbours in depth
  // between them.
  void map_numbers(const AttentionStages::Panels& p) {
    Loops outer = s_.loops_of(p.numbers);
    std::erase_if(outer, [&](const Loop& loop) { return std::ranges::count(p.within, loop) > 0; });
    const std::string name = p.numbers_lane.name();
    ScheduleBuilder::Cut steps{p.numbers_lane, p.together};
    if (p.steps_of_lane > 1)
      steps = s_.split(p.numbers_lane, p.steps_of_lane, Tail::guard, name + "c", name + "n");
    const auto lane = s_.split(steps.outer, lanes_, Tail::guard, name + "0", name + "1");
    s_.reorder({lane.outer, steps.inner, lane.inner});
    s_.unroll(lane.outer);
    s_.unroll(steps.inner);
    s_.vectorize(lane.inner);
    parallelize_panels(outer, p.numbers);
  }

  // Copies the block's rows of a left operand just before they are multiplied.
  void map_rows(const Stage& operand, const Loop& block) {
    s_.compute_at(operand, block);
    const Loops loops = s_.loops_of(operand);
    const int64_t lanes = lanes_;
    const Loop& last = loops.back();
    if (s_.extent(last).value_or(1) <= lanes) return s_.vectorize(last);
    const auto cut = s_.split(last, lanes, Tail::guard, last.name() + "o", last.name() + "l");
    s_.unroll(cut.outer);
    s_.vectorize(cut.inner);
  }

  // Columns cut into panels and, inside these, into vectors of lanes
  struct Columns {
    Loop panels, vectors, lane;
  };
  Columns split_columns(const Loop& column, int64_t panel) {
    const std::string& name = column.name();
    const auto panels = s_.split(column, panel, Tail::guard, name + "p", name + "i");
    if (panel <= lanes_) return {panels.outer, {}, panels.inner};
    const auto vectors = s_.split(panels.inner, lanes_, Tail::guard, name + "v", name + "l");
    return {panels.outer, vectors.outer, vectors.inner};
  }

  // Cuts the output into blocks of rows with tiles in them, and into panels of columns. Returns the
  // loop over blocks.
  Loop cut_output(const Blocking& b) {
    const std::string name = m_.row.name();
    const bool whole = s_.extent(m_.row) && m_.block_rows == 0;
    const Tail tail = whole ? Tail::shift : Tail::guard;
    const auto block = s_.split(m_.row, b.block, tail, name + "0", name + "q");
    const auto tile = s_.split(block.inner, b.tile, Tail::shift, name + "t", name + "r");
    const Columns columns = split_columns(m_.column, m_.values.columns);
    Loops order = m_.batches;
    order.insert(order.end(), {block.outer, columns.panels, tile.outer, tile.inner, columns.vectors,
                               columns.lane});
    s_.reorder(order);
    map_product(m_.value_products, tile.outer, m_.causal);
    s_.unroll(tile.inner);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
    return block.outer;
  }

  // Computes the scores of a panel of keys at the loop over panels. If the block consists of whole
  // tiles, it does so in the loop over tiles, so that the maximum reads registers.
  void map_scores(const Blocking& b, const Loop& panels) {
    const Loop of_top = s_.moved(m_.top.part, m_.top.part_row);
    if (s_.extent(of_top).value_or(1) % b.key_tile == 0) {
      const auto rows = s_.split(of_top, b.key_tile, Tail::guard, of_top.name() + "t",
                                 of_top.name() + "r");
      s_.unroll(rows.inner);
      s_.compute_at(m_.scores, rows.outer);
    } else {
      s_.compute_at(m_.scores, panels);
    }
    const Loop row = s_.moved(m_.scores, m_.scores_row);
    const auto tile = s_.split(row, b.key_tile, Tail::shift, row.name() + "t", row.name() + "r");
    const Columns columns = split_columns(s_.moved(m_.scores, m_.scores_column), m_.keys.columns);
    s_.reorder({columns.panels, tile.outer, tile.inner, columns.vectors, columns.lane});
    map_product(m_.key_products, tile.outer, false);
    s_.unroll(tile.inner);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
  }

  // Computes the register tile of a product at a loop of its reader. Its columns are one panel.
  // by_panels: the depth runs over keys, and is cut into panels.
  void map_product(const AttentionStages::Product& p, const Loop& at, bool by_panels) {
    if (in_tiles_)
      return accumulate_tiles(s_, p.stage, cut_depth(p, by_panels), {}, p.row, p.column,
                              p.instruction, at);
    s_.compute_at(p.stage, at);
    ScheduleBuilder::Cut column{{}, s_.moved(p.stage, p.column)};
    const std::string name = column.inner.name();
    if (s_.extent(column.inner).value_or(0) > lanes_)
      column = s_.split_sums(column.inner, lanes_, name + "v", name + "l");
    const Loops depth = cut_depth(p, by_panels);
    s_.accumulate(p.stage, depth, {s_.moved(p.stage, p.row), column.outer}, column.inner,
                  p.instruction);
    s_.set_scope(p.stage, "register");
    s_.unroll_steps(depth.back(), p.instruction);
  }

  Loops cut_depth(const AttentionStages::Product& p, bool by_panels) {
    if (!by_panels || m_.keys.columns == p.steps) return {p.depth};
    const auto cut = s_.split(p.depth, m_.keys.columns / p.steps, Tail::guard, p.depth.name() + "p",
                              p.depth.name() + "i");
    return {cut.outer, cut.inner};
  }

  // Combines the lanes of each row in the block of queries.
  void map_total(const AttentionStages::Fold& f, const Loop& block) {
    s_.compute_at(f.total, block);
    s_.vectorize(f.lane);
  }

  // Computes the partial results of the block's rows in lanes. Returns the loop over panels of
  // keys, which is outside the rows or inside them.
  Loop cut_part(const AttentionStages::Fold& f, const Loop& block, bool panels_outside) {
    s_.compute_at(f.part, block);
    const Loop row = s_.moved(f.part, f.part_row), lane = s_.moved(f.part, f.part_lane);
    if (panels_outside) s_.reorder({f.part_panels, row, f.part_steps, lane});
    else s_.reorder({row, f.part_panels, f.part_steps, lane});
    s_.decompose(f.part, f.part_panels);
    s_.unroll(f.part_steps);
    s_.vectorize(lane);
    s_.vectorize(s_.init_of(lane));
    return f.part_panels;
  }

  ScheduleBuilder& s_;
  const AttentionStages& m_;
  int64_t lanes_;
  std::optional<int64_t> keys_;
  int64_t row_bytes_ = kScoreBytes;  // for each key of a row
  bool in_tiles_ = false, on_stack_ = true;
};

}  // namespace

void schedule_attention(ScheduleBuilder& s, const AttentionStages& m) {
  if (!m.keys.stage.defined()) {
    for (const Stage& stage : s.stages())
      if (s.reduce_loops_of(stage).empty()) s.map_nest(stage);
    return;
  }
  AttentionSchedule(s, m).run();
}

}  // namespace tw
