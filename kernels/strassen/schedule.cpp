// Schedules one level of Strassen's algorithm. The sums of the left operand come first. Then, for
// every group of output columns and block of rows, follow the seven products, each in register
// tiles over the whole depth, and the four parts of the output.
//
// All tiles of a block pass the weights of one product before those of the next product. The
// second-level cache holds these weights and the block's products. If it cannot hold the products
// of more than one tile, the products stay in the first-level cache, and all weights pass once for
// each tile. If the second-level cache can hold the weights but not the sums, blocks of rows go one
// by one, together with their sums.
#include <algorithm>

#include "kernels/common/register_tile.h"
#include "kernels/schedule/builder.h"
#include "kernels/strassen/strassen.h"

namespace tw {
namespace {

// Tiles of rows in a block, out of `tiles`: the most whose sums fill half of the cache and that
// divide evenly among the cores. 0: there are no blocks.
int64_t block_tiles(int64_t tiles, int64_t tile_bytes, int64_t weight_bytes, const Target& target) {
  if (tiles * tile_bytes <= target.l2_bytes || 2 * weight_bytes > target.l2_bytes) return 0;
  for (int64_t most : {target.l2_bytes / 2, target.l2_bytes})
    for (int64_t n = most / tile_bytes; n > 0; --n)
      if (tiles % n == 0 && tiles / n % target.cores == 0) return n;
  return 0;
}

// Tiles of rows that pass one product's weights before the next product's: the most whose products
// fit an eighth of the second-level cache and that give every core the same number of blocks, or
// all tiles.
int64_t passing_tiles(int64_t tiles, bool even, int64_t groups, int64_t tile_bytes,
                      const Target& target) {
  const int64_t most = std::min(tiles, target.l2_bytes / 8 / tile_bytes);
  for (int64_t n = most; n > 1; --n)
    if ((n == tiles || (even && tiles % n == 0)) && tiles / n * groups % target.cores == 0)
      return n;
  return 1;
}

// Sizes of the lowered kernel, and the division of its rows
struct StrassenProblem {
  int64_t half_rows, half_blocks, block, vectors, depth, weight_bytes;
};
struct Rows {
  int64_t tile;
  int64_t own;      // tiles of a block with sums of its own; 0: there are no such blocks
  int64_t passing;  // tiles that pass one product's weights before the next one's
  bool even;        // true: the half's rows are whole tiles
  int64_t tiles;
  int64_t in_block() const { return std::max(own, passing); }
  bool blocks() const { return own > 0 || (passing > 1 && passing < tiles); }
};

class StrassenSchedule {
 public:
  StrassenSchedule(ScheduleBuilder& s, const StrassenStages& m)
      : s_(s), m_(m), problem_(problem()), rows_(choose_rows()) {}

  void run() {
    Loop block = m_.block, lane = m_.lane;
    if (m_.column.defined()) {
      const auto columns = s_.split(m_.column, problem_.block, Tail::guard, "c", "l");
      block = columns.outer, lane = columns.inner;
    }
    sum_ = s_.cache_write(m_.acc, "sum", "register");
    cut_output(block, lane);
    sums();
    s_.unroll({row_half_, block_half_});  // four outputs share seven loads
    s_.vectorize(lane);
    if (rows_.own > 0) return left_of_block();
    left_before();
    if (rows_outside_) s_.parallelize({m_.image, row_block_, group_}, "yp");
    else s_.parallelize({m_.image, group_, rows_.passing > 1 ? row_block_ : tile_}, "yp");
  }

 private:
  StrassenProblem problem() const {
    const auto at = [](const Expr& e) { return *as_const(e); };
    const Shape &acc = s_.buffer(m_.acc.buffer()).shape, &w = s_.buffer(m_.weights).shape;
    const int64_t block = at(acc[3]);
    return {at(acc[1]),       at(acc[2]),       block,
            at(w[4]) / block, at(w[2]) * block, *s_.bytes_of(m_.weights)};
  }

  Rows choose_rows() const {
    const StrassenProblem& p = problem_;
    const Target& target = s_.target();
    std::vector<int64_t> others;
    for (int64_t n = 1; s_.open() && n <= p.half_rows && n <= target.vector_registers; ++n)
      if (!s_.rules() || fits_registers(target, {n, p.vectors})) others.push_back(n);
    Rows r{};
    r.tile = s_.choose("rows", strassen_rows(p.half_rows, p.vectors, target), others);
    r.tiles = (p.half_rows + r.tile - 1) / r.tile;
    r.even = p.half_rows % r.tile == 0;
    const int64_t usual_own =
        r.even ? block_tiles(r.tiles, 7 * r.tile * p.depth * 4, p.weight_bytes, target) : 0;
    const int64_t own = s_.choose("own_tiles", usual_own, {0, 1, 2, 4, 8});
    r.own = std::min(own, r.even ? r.tiles : 0);
    const int64_t usual_passing = passing_tiles(r.tiles, r.even, p.half_blocks / p.vectors,
                                                7 * r.tile * p.vectors * p.block * 4, target);
    r.passing = 1;
    if (r.own == 0)
      r.passing = std::min(s_.choose("passing_tiles", usual_passing, {1, 2, 3, 4, 6, 8, 12, 16}),
                           r.tiles);
    return r;
  }

  // Cuts the output into halves of rows and columns, and these into blocks of rows, tiles, and
  // groups of columns.
  void cut_output(const Loop& block, const Loop& lane) {
    const auto [row_half, in_half] = s_.split(m_.row, problem_.half_rows, Tail::guard, "u", "r");
    const auto [block_half, in_blocks] = s_.split(block, problem_.half_blocks, Tail::guard, "v",
                                                  "g");
    const auto [group, vector] = s_.split(in_blocks, problem_.vectors, Tail::guard, "c0", "c1");
    row_half_ = row_half, block_half_ = block_half, group_ = group;
    Loop rows = in_half;
    if (rows_.blocks()) {
      const auto cut = s_.split(rows, rows_.tile * rows_.in_block(), Tail::guard, "rb", "ri");
      row_block_ = cut.outer, rows = cut.inner;
    }
    const auto [tile, row] = s_.split(rows, rows_.tile, Tail::shift, "r0", "r1");
    tile_ = tile;
    rows_outside_ = rows_.own > 0 ||
                    (rows_.blocks() &&
                     s_.choose_switch("rows_outside",
                                      takes_rows(s_, m_.left.buffer(), m_.weights)));
    const Loop outer = rows_outside_ ? row_block_ : group_;
    const Loop inner = rows_outside_ ? group_ : row_block_;
    s_.reorder({m_.image, outer, inner, tile, row, vector, row_half, block_half, lane});
  }

  void sums() {
    const auto acc = [&](const Loop& loop) { return s_.moved(m_.acc, loop); };
    const Loop product = acc(m_.acc_product), block = acc(m_.acc_block), lane = acc(m_.acc_lane);
    Loop row = acc(m_.acc_row);
    if (rows_.passing > 1) {
      s_.compute_at(m_.acc, rows_.blocks() && !rows_outside_ ? row_block_ : group_);
      s_.set_scope(m_.acc, "thread");
      const auto cut = s_.split(row, rows_.tile, Tail::shift, "acc_r0", "acc_r1");
      row = cut.inner;
      s_.reorder({product, cut.outer, row, block, lane});
      s_.compute_at(sum_, cut.outer);
    } else {
      s_.compute_at(m_.acc, tile_);
      s_.set_scope(m_.acc, "stack");
      s_.compute_at(sum_, product);
    }
    s_.accumulate(sum_, {m_.depth_block, m_.depth_lane},
                  {s_.moved(sum_, m_.acc_row), s_.moved(sum_, m_.acc_block)},
                  s_.moved(sum_, m_.acc_lane));
    s_.set_scope(sum_, "register");
    // Prefetches help weights that are used once. They get in the way if a large panel is read from
    // the third-level cache again and again.
    const Loop depth = s_.has(m_.depth_lane) ? m_.depth_lane : m_.depth_block;
    const bool hints = s_.choose_switch("prefetch_w", true);
    if (hints && !s_.prefetch_next_panel(m_.weights, depth) && problem_.half_rows <= rows_.tile)
      s_.prefetch_weights(m_.weights, depth, s_.kRowsAhead);
    s_.unroll({row, block});
    s_.vectorize(lane);
  }

  // Computes the left operand's sums in each block of rows.
  void left_of_block() {
    s_.compute_at(m_.left, row_block_);
    s_.set_scope(m_.left, "thread");
    s_.unroll(s_.moved(m_.left, m_.left_product));
    s_.vectorize(s_.moved(m_.left, m_.left_lane));
    s_.parallelize({m_.image, row_block_}, "yp");
  }

  // Computes all of the left operand's sums first.
  void left_before() {
    s_.unroll(m_.left_product);
    s_.vectorize(m_.left_lane);
    if (!rows_.even) return s_.parallelize({m_.left_block, m_.left_row}, "sp");
    // A tile's sums lie in the order in which they are read.
    s_.layout(m_.left.buffer(), {"q", "b", "i", "l"},
              {var("q"), floor_div(var("i"), Expr(rows_.tile)), var("b"),
               floor_mod(var("i"), Expr(rows_.tile)), var("l")});
    const auto [tile, row] = s_.split(m_.left_row, rows_.tile, Tail::guard, "st", "sr");
    s_.reorder({tile, m_.left_block, row});
    s_.parallelize({tile, m_.left_block}, "sp");
  }

  ScheduleBuilder& s_;
  const StrassenStages& m_;
  const StrassenProblem problem_;
  const Rows rows_;
  Stage sum_;
  // Loops of y: halves of the rows and of the columns, groups of columns, blocks of rows, tiles of
  // rows
  Loop row_half_, block_half_, group_, row_block_, tile_;
  bool rows_outside_ = false;
};

}  // namespace

void schedule_strassen(ScheduleBuilder& s, const StrassenStages& m) {
  StrassenSchedule(s, m).run();
}

}  // namespace tw
