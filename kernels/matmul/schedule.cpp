// Schedules matrix products: MR rows times one packed panel stay in registers over the whole depth.
// Panels are the outermost loop, so their weights stay in cache while the rows pass.
// kernels/common/register_tile.h chooses the tile.
#include "kernels/common/register_tile.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/builder.h"
#include "kernels/schedule/tiles.h"

namespace tw {
namespace {

// The output's columns, cut into panels and, inside these, into vectors of lanes
struct Columns {
  Loop panels, vectors, lane;
};

class MatMulSchedule {
 public:
  MatMulSchedule(ScheduleBuilder& s, const MatMulStages& m)
      : s_(s),
        m_(m),
        paired_(m.paired.defined()),
        lanes_(s.target().lanes(element_bytes())),
        vectors_(std::max<int64_t>(1, m.panel / lanes_)) {}

  void run() {
    if (in_tiles(s_.target(), m_.instruction)) return run_tiles();
    s_.map_nests(m_.copies);
    for (const MatMulStages::Blocks::OfRows& rows : m_.blocks.of_rows) map_rows(rows);
    const int64_t rows = tile_rows_of();
    const Columns columns = cut_columns();
    // The sums of a symbolic number of rows, or of rows that do not fill instructions, are in whole
    // tiles. Only the output has a tail, with one branch for each row.
    ScheduleBuilder::Cut row{m_.y.row, {}};
    const auto all = s_.extent(m_.y.row);
    const Expr extent = s_.any_extent(m_.y.row);
    const bool whole = all && all == s_.extent(m_.acc_row);
    if (rows > 1) row = s_.split(m_.y.row, rows, whole ? Tail::shift : Tail::guard, "i0", "i1");
    const Tiles tiles = order_tiles(columns.panels, row.outer, all.has_value());
    const Loops& outer = tiles.around;
    Loops order = outer;
    order.insert(order.end(), {row.inner, columns.vectors, columns.lane});
    s_.reorder(order);
    const Loop depth = m_.blocks.sums.defined() ? sum_blocks(outer.back())
                       : paired_                ? sum_pairs(outer.back())
                                                : sum(outer.back());
    // A single row waits for the weights anyway, so a prefetch has no time to help.
    if (rows > 1 && all) s_.prefetch_panels(m_.weights, depth, paired_);
    s_.unroll(row.inner);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
    s_.parallelize(tiles.shared, "yp");
    if (rows > 1 && !all) {
      s_.specialize_one(row.outer, extent);
      s_.prefetch_panels(m_.weights, depth, paired_);  // in the general loop
    }
  }

 private:
  // Schedules sums in tile registers, a few tiles at once. Their copies are small, and in the
  // first-level cache when the output's rows are computed from them.
  void run_tiles() {
    const Columns columns = cut_columns();
    const auto all = s_.extent(m_.y.row);
    const bool whole = all && all == s_.extent(m_.acc_row);
    const int64_t rows = rows_of_tiles(s_, m_.instruction, m_.acc_row);
    ScheduleBuilder::Cut row{{}, m_.y.row};
    if (all != rows) row = s_.split(m_.y.row, rows, whole ? Tail::shift : Tail::guard, "i0", "i1");
    const bool rows_outside = s_.choose_switch("rows_outside", false);
    Loops outer = m_.y.batches;
    outer.push_back(rows_outside ? row.outer : columns.panels);
    outer.push_back(rows_outside ? columns.panels : row.outer);
    Loops order = outer;
    order.insert(order.end(), {row.inner, columns.vectors, columns.lane});
    s_.reorder(order);
    std::erase_if(outer, [&](const Loop& loop) { return !s_.has(loop); });
    accumulate_tiles(s_, m_.acc, m_.depth, {}, m_.acc_row, m_.acc_column, m_.instruction,
                     outer.back());
    s_.map_nests(m_.copies);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
    s_.parallelize(outer, "yp");
  }

  // Loops over tiles of the output, from the outside in, and those of them that threads share
  struct Tiles {
    Loops around, shared;
  };
  // By default, all rows pass each panel; "rows_outside" makes all panels pass each block of rows.
  // A block has "outer_tiles" tiles along the outer of the two loops and "inner_tiles" along the
  // inner one, 0 for all of them. Its operands stay in a cache.
  Tiles order_tiles(const Loop& panels, const Loop& rows, bool known) {
    const bool rows_outside = s_.choose_switch("rows_outside", false);
    ScheduleBuilder::Cut outer{rows_outside ? rows : panels, {}},
        inner{rows_outside ? panels : rows, {}};
    int64_t high = 1, wide = 0;
    if (known) {
      high = s_.choose("outer_tiles", 1, {2, 3, 4, 6, 8, 12, 16});
      wide = s_.choose("inner_tiles", 0, {1, 2, 3, 4, 6, 8, 12, 16});
    }
    if (high == 1 && wide > 0) s_.fail("blocks of one tile have no tiles to order");
    if (high > 1) outer = s_.split(outer.outer, high, Tail::guard, "outer0", "outer1");
    if (wide > 0) inner = s_.split(inner.outer, wide, Tail::guard, "inner0", "inner1");
    Tiles tiles{m_.y.batches, m_.y.batches};
    for (const Loop& loop : {outer.outer, inner.outer})
      tiles.around.push_back(loop), tiles.shared.push_back(loop);
    for (const Loop& loop : {outer.inner, inner.inner})
      if (loop.defined()) tiles.around.push_back(loop);
    return tiles;
  }

  int64_t element_bytes() const { return dtype_bytes(s_.buffer(m_.acc.buffer()).dtype); }

  // Distance in memory of the left operand's rows: the depth, if the operand is a plain matrix
  std::optional<int64_t> row_bytes() const {
    if (m_.copied_rows) return std::nullopt;
    const auto depth = m_.depth.size() == 1 ? s_.extent(m_.depth[0]) : std::nullopt;
    return depth ? std::optional(*depth * element_bytes()) : std::nullopt;
  }

  // Rows of the register tile
  int64_t tile_rows_of() const {
    constexpr int64_t kMostTile = 64;  // limit of vectors without rules
    const std::optional<int64_t> all = s_.extent(m_.y.row), bytes = row_bytes();
    const int64_t wide = paired_ ? kPairedVectors : vectors_;
    const int64_t most = all.value_or(s_.target().vector_registers);
    std::vector<int64_t> others;
    const int64_t block = m_.instruction.rows;  // tiles consist of whole instructions
    const std::optional<int64_t> sums = s_.extent(m_.acc_row);
    const auto fits = [&](int64_t rows) {
      return block == 1 || (rows % block == 0 && *sums % rows == 0);
    };
    for (int64_t rows = 1; s_.open() && rows <= most; ++rows) {
      if (!fits(rows)) continue;
      const bool strided = bytes && *bytes % kSetBytes == 0 && rows > kSetWays;
      if (s_.rules() ? fits_registers(s_.target(), {rows, wide}) && !strided
                     : rows * wide <= kMostTile)
        others.push_back(rows);
    }
    const int64_t usual = paired_     ? paired_rows(s_.target(), all)
                          : block > 1 ? tile_rows(s_.target(), vectors_, all, {}, block)
                          : s_.by_element(m_.instruction)
                              ? std::min(tile_rows(s_.target(), vectors_, all, bytes),
                                         kElementRegisters / (vectors_ + 1))
                              : tile_rows(s_.target(), vectors_, all, bytes);
    return s_.choose("rows", usual, others);
  }

  // A single column is not cut: its lanes would all store to one place.
  Columns cut_columns() {
    const Loop column = m_.y.column;
    const bool one = s_.extent(column) == 1;
    const int64_t lane = std::min(m_.panel, lanes_);
    if (one) return {column, {}, {}};
    const auto [panels, within] = s_.split(column, m_.panel, Tail::guard, "j0", "j1");
    if (m_.panel <= lane) return {panels, {}, within};
    const auto [vectors, inner] = s_.split(within, lane, Tail::guard, "jv", "jl");
    return {panels, vectors, inner};
  }

  // Computes the sums below loop `at`, one step of the depth at a time. Returns the loop over
  // steps.
  Loop sum(const Loop& at) {
    s_.compute_at(m_.acc, at);
    const Loops cut = cut_tile(m_.acc, m_.acc_row, m_.acc_column);
    SumInstruction instruction = m_.instruction;
    Loops tile = {cut[0], cut[1]};
    if (instruction.rows > 1) instruction.row = cut[0], tile = {cut[1]};
    s_.accumulate(m_.acc, m_.depth, tile, cut[2], instruction);
    s_.set_scope(m_.acc, "register");
    return s_.unroll_steps(m_.depth[0], m_.instruction);
  }

  // For small integers: computes the scaled sums below loop `at`, and inside them a block's sums
  // and the numbers of a step. Returns the loop over steps.
  Loop sum_blocks(const Loop& at) {
    const MatMulStages::Blocks& blocks = m_.blocks;
    s_.compute_at(m_.acc, at);
    const Loops tile = cut_tile(m_.acc, m_.acc_row, m_.acc_column);
    s_.accumulate(m_.acc, m_.depth, {tile[0], tile[1]}, tile[2]);
    s_.compute_at(blocks.sums, m_.depth[0]);
    const Loops sums = cut_tile(blocks.sums, blocks.row, blocks.column);
    s_.accumulate(blocks.sums, {blocks.step, blocks.in_byte}, {sums[0], sums[1]}, sums[2],
                  m_.instruction);
    if (blocks.numbers.defined()) {
      s_.compute_at(blocks.numbers, blocks.in_byte);
      const Loop column = s_.moved(blocks.numbers, blocks.numbers_column);
      ScheduleBuilder::Cut cut{{}, column};
      if (m_.panel > lanes_) cut = s_.split(column, lanes_, Tail::guard, "codes_jv", "codes_jl");
      s_.unroll(cut.outer);
      s_.vectorize(
          s_.fuse({cut.inner, s_.moved(blocks.numbers, blocks.numbers_of_step)}, "codes_l"));
      s_.set_scope(blocks.numbers, "register");
    }
    s_.unroll(blocks.in_byte);
    s_.set_scope(m_.acc, "register");
    s_.set_scope(blocks.sums, "register");
    return s_.unroll_part(blocks.step);
  }

  // Schedules a stage computed from rows: vectors along a block, threads over rows.
  void map_rows(const MatMulStages::Blocks::OfRows& rows) {
    const int64_t lanes = s_.target().lanes(dtype_bytes(s_.buffer(rows.stage.buffer()).dtype));
    Loop along = rows.along;
    if (s_.extent(along).value_or(0) > lanes)
      along = s_.split(along, lanes, Tail::guard, along.name() + "_o", along.name() + "_v").inner;
    s_.vectorize(along);
    s_.parallelize({rows.row}, rows.stage.label() + "_p");
  }

  // Row, vectors of columns and lane of a moved stage, and of its init if that is separate
  Loops cut_tile(const Stage& stage, const Loop& row, const Loop& column) {
    const Loop lane = s_.moved(stage, column);
    if (m_.panel <= lanes_) return {s_.moved(stage, row), {}, lane};
    const ScheduleBuilder::Cut cut = s_.split_sums(lane, lanes_, stage.label() + "_jv",
                                                   stage.label() + "_jl");
    return {s_.moved(stage, row), cut.outer, cut.inner};
  }

  Loop sum_pairs(const Loop& at) {
    const PairedSteps steps = accumulate_pairs(
        s_, {m_.acc, m_.paired, m_.depth, {}, {m_.acc_row}, m_.acc_column}, at);
    s_.unroll(steps.straight);
    return steps.rolled.empty() ? Loop() : steps.rolled.back();
  }

  ScheduleBuilder& s_;
  const MatMulStages& m_;
  bool paired_;
  int64_t lanes_, vectors_;
};

}  // namespace

void schedule_matmul(ScheduleBuilder& s, const MatMulStages& m) { MatMulSchedule(s, m).run(); }

}  // namespace tw
