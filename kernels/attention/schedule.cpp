// Attention: a block of query rows at a time. Its scores stay on the stack, the tiles of both
// products in registers; a panel of keys or values stays in the L1 cache while the block's rows
// pass it.
#include <algorithm>
#include <bit>

#include "kernels/attention/attention.h"
#include "kernels/common/register_tile.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

constexpr int64_t kBlockRows = 16;
constexpr int64_t kStackBytes = 40 << 10;  // of the scores and their exponentials
constexpr int64_t kMostKeys = 2048;        // of a row there

// Rows in one register tile over panels of keys and of columns, and of the block that they are in.
struct Blocking {
  int64_t key_tile, tile, block;
};

class AttentionSchedule {
 public:
  AttentionSchedule(ScheduleBuilder& s, const AttentionStages& m)
      : s_(s), m_(m), lanes_(std::max(1, s.target().lanes(4))) {
    keys_ = as_const(s.buffer(m.scores.buffer()).shape.back());
    // Else a thread's part of the arena holds a block's scores
    on_stack_ = keys_ && *keys_ <= kMostKeys;
  }

  void run() {
    const Blocking b = choose_blocking();
    map_panels(m_.keys);
    map_panels(m_.values);
    const Loop block = cut_output(b);
    // The block's sums, exponentials and scores, the last first.
    s_.compute_at(m_.inverse, block);
    const Loop row = s_.moved(m_.inverse, m_.inverse_row);
    if (s_.extent(row) == lanes_) s_.vectorize(row);
    map_fold(m_.sum, block);
    s_.compute_at(m_.exponentials, block);
    const Loop column = m_.exponentials_column;
    s_.vectorize(
        s_.split(column, lanes_, Tail::guard, column.name() + "o", column.name() + "l").inner);
    map_fold(m_.top, block);
    map_scores(b, block);
    if (!on_stack_)
      for (const Stage& stage : {m_.scores, m_.exponentials}) s_.set_scope(stage, "thread");
    Loops outer = m_.batches;
    outer.push_back(block);
    s_.parallelize(outer, "yp");
  }

 private:
  Blocking choose_blocking() const {
    const std::optional<int64_t> all_rows = s_.extent(m_.row);
    const int64_t rows = all_rows.value_or(kFreeRows);
    const int64_t fit = on_stack_ ? std::max<int64_t>(1, kStackBytes / 8 / *keys_) : kBlockRows;
    const Target& target = s_.target();
    const auto tile_of = [&](const char* knob, int64_t panel) -> int64_t {
      const int64_t vectors = panel / lanes_, usual = tile_rows(target, vectors, rows);
      if (!all_rows)  // a part of a block
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

  // The copy in panels; rows of the operand that become columns go in squares of vectors, which
  // registers transpose.
  void map_panels(const AttentionStages::Panels& p) {
    const bool whole = s_.extent(p.depth).value_or(1) % lanes_ == 0 &&
                       s_.extent(p.lane).value_or(1) % lanes_ == 0;
    if (!p.transposes || lanes_ < 2 || !whole) return s_.map_nest(p.stage);
    Loops outer = s_.loops_of(p.stage);
    outer.resize(outer.size() - 2);
    const std::string depth_name = p.depth.name(), lane_name = p.lane.name();
    const auto depth = s_.split(p.depth, lanes_, Tail::guard, depth_name + "0", depth_name + "1");
    const auto lane = s_.split(p.lane, lanes_, Tail::guard, lane_name + "0", lane_name + "1");
    outer.insert(outer.end(), {lane.outer, depth.outer});
    Loops order = outer;
    order.insert(order.end(), {depth.inner, lane.inner});
    s_.reorder(order);
    s_.unroll(depth.inner);
    s_.vectorize(lane.inner);
    s_.parallelize(outer, p.stage.label() + "_p");
  }

  // Columns in panels and, in them, vectors of lanes.
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

  // Blocks of rows and tiles in them, panels of columns. The result: the loop over blocks.
  Loop cut_output(const Blocking& b) {
    const std::string name = m_.row.name();
    const Tail tail = s_.extent(m_.row) ? Tail::shift : Tail::guard;
    const auto block = s_.split(m_.row, b.block, tail, name + "0", name + "q");
    const auto tile = s_.split(block.inner, b.tile, Tail::shift, name + "t", name + "r");
    const Columns columns = split_columns(m_.column, m_.values.columns);
    Loops order = m_.batches;
    order.insert(order.end(), {block.outer, columns.panels, tile.outer, tile.inner, columns.vectors,
                               columns.lane});
    s_.reorder(order);
    map_product(m_.value_products, tile.outer);
    s_.unroll(tile.inner);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
    return block.outer;
  }

  void map_scores(const Blocking& b, const Loop& block) {
    s_.compute_at(m_.scores, block);
    const Loop row = s_.moved(m_.scores, m_.scores_row);
    const auto tile = s_.split(row, b.key_tile, Tail::shift, row.name() + "t", row.name() + "r");
    const Columns columns = split_columns(s_.moved(m_.scores, m_.scores_column), m_.keys.columns);
    s_.reorder({columns.panels, tile.outer, tile.inner, columns.vectors, columns.lane});
    map_product(m_.key_products, tile.outer);
    s_.unroll(tile.inner);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
  }

  // The register tile of a product at a loop of its reader; its columns are one panel.
  void map_product(const AttentionStages::Product& p, const Loop& at) {
    s_.compute_at(p.stage, at);
    ScheduleBuilder::Cut column{{}, s_.moved(p.stage, p.column)};
    const std::string name = column.inner.name();
    if (s_.extent(column.inner).value_or(0) > lanes_)
      column = s_.split(column.inner, lanes_, Tail::guard, name + "v", name + "l");
    s_.accumulate(p.stage, {p.depth}, {s_.moved(p.stage, p.row), column.outer}, column.inner);
    s_.set_scope(p.stage, "register");
    s_.unroll_part(p.depth);
  }

  // The lanes in registers and their fold, row by row, in the block of queries.
  void map_fold(const AttentionStages::Fold& f, const Loop& block) {
    s_.compute_at(f.total, block);
    s_.compute_at(f.part, s_.moved(f.total, f.row));
    s_.accumulate(f.part, {f.part_keys}, {}, s_.moved(f.part, f.part_lane));
    s_.set_scope(f.part, "register");
    s_.vectorize(f.lane);
  }

  ScheduleBuilder& s_;
  const AttentionStages& m_;
  int64_t lanes_;
  std::optional<int64_t> keys_;
  bool on_stack_ = true;
};

}  // namespace

void schedule_attention(ScheduleBuilder& s, const AttentionStages& m) {
  AttentionSchedule(s, m).run();
}

}  // namespace tw
