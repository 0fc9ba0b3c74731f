// Schedules Winograd convolutions in blocks of T tiles. A block first transforms its input. For
// every group of output channels then follow the products (a register tile of MR tiles by V channel
// vectors over all input channels, for each of the A*A points) and the output transform. With few
// blocks, the whole input is transformed first, and threads share channel groups and blocks.
#include <algorithm>

#include "ir/core_rates.h"
#include "kernels/common/register_tile.h"
#include "kernels/schedule/builder.h"
#include "kernels/winograd/winograd.h"

namespace tw {
namespace {

struct Problem {
  // Extents of y that a tile makes: m, or the windows in it before a pool
  int64_t high, wide;
  // `points` is A; `groups` counts channel groups of the output
  int64_t points, in_channels, tiles, vectors, groups;
  // Tiles in a row of the output; bytes of the padded input for a block of channels
  int64_t row_tiles, images, plane_bytes;
  int64_t depth, bytes;  // channels that a product takes at once; bytes of a transformed element
};

Problem problem_of(const ScheduleBuilder& s, const WinogradStages& m) {
  const auto shape = [&](const BufferName& name) { return s.buffer(name).shape; };
  const Shape v = shape(m.columns.stage.buffer()), w = shape(m.weights),
              acc = shape(m.acc.buffer()), padded = shape(m.pad.buffer());
  const auto at = [](const Expr& e) { return *as_const(e); };
  const std::vector<int64_t>& window = m.out.window;
  const int64_t tile = at(shape(m.out_columns.stage.buffer())[2]);
  const int64_t high = window.empty() ? tile : tile / window[0];
  const int64_t wide = window.empty() ? tile : tile / window[1];
  const int64_t row_tiles = (*s.extent(m.out.loops.row) + wide - 1) / wide;
  return {high,          wide,
          at(v[0]),      at(v[2]) * at(v[4]),
          at(v[3]),      at(w[5]) / at(acc.back()),
          at(w[0]),      row_tiles,
          at(padded[0]), *s.bytes_of(m.pad.buffer()) / at(padded[1]),
          m.depth,       dtype_bytes(s.buffer(m.columns.stage.buffer()).dtype)};
}

struct Blocking {
  int64_t tiles, rows;  // T, MR
  bool whole_input;     // true: it is transformed before everything else
};

// True: the padded copy of a block of input channels leaves room in the cache for its transform.
bool stays_near(int64_t bytes, const Target& target) { return 2 * bytes <= target.l2_bytes; }

// True: blocks consist of whole rows of tiles, so they read a known part of the input.
bool whole_rows(const Problem& p, int64_t tiles) {
  return p.images == 1 && tiles % p.row_tiles == 0 && p.tiles % tiles == 0;
}

// Chooses the blocking by the cycles for one point and input channel, up to a factor. They count
// the products with the loads that hide behind them, and the weights, which are read once for each
// block (weight_cycles a vector, 0.8 on Zen 4, which reads 20 bytes a cycle). They also count an
// input that the second-level cache cannot hold: transformed (kSpillCycles a tile, kFarCycles for
// every group of channels that reads a good part of the last cache), or before the transform
// (kStrayCycles a tile).
Blocking choose_blocking(const Problem& p, const Target& target) {
  const double a_cycle = vector_products(target);
  // Products in the time in which a Zen 4 core makes one
  const double a_step = target.vector_bits >= 512 ? a_cycle : a_cycle / 2;
  const double of_f32 = static_cast<double>(p.bytes) / 4, steps = static_cast<double>(p.depth);
  const double weight_cycles = 0.8 * a_step * 20 / core_rates(target).l3_bytes * of_f32;
  constexpr double kFewestProducts = 8, kTileCycles = 20, kSpillCycles = 0.4, kFarCycles = 0.4,
                   kStrayCycles = 0.6;
  constexpr int64_t kMostTiles = 56;
  const int64_t lanes = target.lanes(4),
                most_rows = std::max<int64_t>(
                    1, (target.vector_registers - 1 - p.vectors) / p.vectors);
  const int64_t tile_bytes = p.points * p.points *
                             (p.bytes * p.in_channels + 4 * p.vectors * lanes);
  Blocking best{};
  double best_cost = 0;
  for (int64_t tiles = 1; tiles <= std::min(p.tiles, kMostTiles); ++tiles) {
    const int64_t blocks = (p.tiles + tiles - 1) / tiles;
    for (const bool whole_input : {false, true}) {
      const int64_t iterations = whole_input ? blocks * p.groups : blocks,
                    held = whole_input ? p.tiles : tiles;
      const double balance = static_cast<double>((iterations + target.cores - 1) / target.cores *
                                                 target.cores) /
                             static_cast<double>(iterations);
      double input = held * tile_bytes > target.l2_bytes ? kSpillCycles : 0;
      if (4 * held * tile_bytes > target.l3_bytes)
        input += kFarCycles * static_cast<double>(p.groups);
      if (whole_input ? !stays_near(p.plane_bytes, target) : !whole_rows(p, tiles))
        input += kStrayCycles;
      for (int64_t rows = 1; rows <= std::min(tiles, most_rows); ++rows) {
        const double products = std::max(static_cast<double>(rows * p.vectors), kFewestProducts),
                     loads = static_cast<double>(rows + p.vectors) / 2;
        const double panel = static_cast<double>((tiles + rows - 1) / rows) *
                                 (std::max(products, loads) / steps +
                                  kTileCycles / static_cast<double>(p.in_channels)) +
                             weight_cycles * static_cast<double>(p.vectors);
        const double cost = balance * (static_cast<double>(blocks * p.groups) * panel +
                                       static_cast<double>(p.tiles) * input * of_f32);
        if (best.tiles && cost > best_cost * 0.999) continue;
        best = {tiles, rows, whole_input};
        best_cost = cost;
      }
    }
  }
  return best;
}

// The default blocking, or that of a point
Blocking blocking_of(const ScheduleBuilder& s, const Problem& p) {
  Blocking b = choose_blocking(p, s.target());
  std::vector<int64_t> tiles, rows;
  for (const int64_t n : {2, 4, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64})
    if (n <= p.tiles) tiles.push_back(n);
  for (int64_t n = 1; n <= std::min<int64_t>(p.tiles, s.target().vector_registers); ++n)
    if (!s.rules() || fits_registers(s.target(), {n, p.vectors})) rows.push_back(n);
  b.tiles = s.choose("tiles", b.tiles, tiles);
  b.rows = std::min(s.choose("rows", b.rows, rows), b.tiles);
  b.whole_input = s.choose_switch("whole_input", b.whole_input);
  return b;
}

class WinogradSchedule {
 public:
  WinogradSchedule(ScheduleBuilder& s, const WinogradStages& m)
      : s_(s), m_(m), problem_(problem_of(s, m)), blocking_(blocking_of(s, problem_)) {}

  void run() {
    sum_ = s_.cache_write(m_.acc, "sum", "register");
    // The pool reads its windows from the transformed tile.
    if (m_.out.conv.defined()) s_.compute_inline(m_.out.conv);
    cut_output();
    const bool whole = blocking_.whole_input;
    s_.compute_at(m_.out_columns.stage, channel_);
    s_.compute_at(m_.out_rows.stage, channel_);
    s_.compute_at(m_.acc, whole ? block_ : group_);
    s_.set_scope(m_.acc, "thread");
    transform(moved(m_.out_rows));
    transform(moved(m_.out_columns));
    s_.unroll(column_);
    s_.vectorize(m_.out.loops.lane);
    products();
    if (!whole) {
      s_.compute_at(m_.columns.stage, block_);
      s_.set_scope(m_.columns.stage, "thread");
    }
    const auto columns = whole ? m_.columns : moved(m_.columns);
    transform_input(columns);
    if (!whole) return s_.parallel(block_);
    const bool pads_blocks = s_.has(m_.pad) && s_.loops_of(m_.pad).front() == columns.block;
    s_.parallelize(pads_blocks ? Loops{columns.block} : Loops{columns.block, columns.tile}, "vt");
    s_.parallelize({group_, block_}, "yp");
  }

 private:
  using Transform = WinogradStages::Transform;

  // Cuts the loops of y: points of a tile are innermost, tiles are in blocks, channels in groups of
  // vectors.
  void cut_output() {
    const ConvLoops& y = m_.out.loops;
    const auto [high, line] = s_.split(y.lines[0], problem_.high, Tail::guard, "h0", "h1");
    const auto [wide, column] = s_.split(y.row, problem_.wide, Tail::guard, "w0", "w1");
    const auto [group, channel] = s_.split(y.channel, problem_.vectors, Tail::guard, "c0", "c1");
    s_.reorder({y.image, high, wide, group, channel, line, column, y.lane});
    const Loop tiles = s_.fuse({y.image, high, wide}, "p");
    const auto [block, tile] = s_.split(tiles, blocking_.tiles, Tail::shift, "p0", "p1");
    const bool whole = blocking_.whole_input;
    s_.reorder({whole ? group : block, whole ? block : group, tile, channel, line, column, y.lane});
    block_ = block, group_ = group, channel_ = channel, column_ = column;
  }

  Transform moved(const Transform& t) const {
    const auto loop = [&](const Loop& l) { return s_.moved(t.stage, l); };
    return {t.stage, loop(t.tile), loop(t.block), loop(t.fixed), loop(t.along), loop(t.lane)};
  }

  // Unrolls the transformed axis, so its rows share what they can. The other axis stays a loop.
  void transform(const Transform& t) {
    s_.reorder({t.fixed, t.along, t.lane});
    s_.unroll(t.along);
    s_.vectorize(t.lane);
  }

  void products() {
    const auto acc = [&](const Loop& loop) { return s_.moved(m_.acc, loop); };
    ScheduleBuilder::Cut tiles{{}, acc(m_.acc_tile)};
    const bool cut = blocking_.rows < blocking_.tiles;
    if (cut) tiles = s_.split(tiles.inner, blocking_.rows, Tail::shift, "acc_p0", "acc_p1");
    const Loop row = acc(m_.acc_row), column = acc(m_.acc_column), block = acc(m_.acc_block),
               lane = acc(m_.acc_lane);
    s_.reorder({row, column, tiles.outer, tiles.inner, block, lane});
    s_.compute_at(sum_, cut ? tiles.outer : column);
    s_.accumulate(sum_, {m_.depth_block, m_.depth_lane},
                  {s_.moved(sum_, m_.acc_tile), s_.moved(sum_, m_.acc_block)},
                  s_.moved(sum_, m_.acc_lane), m_.instruction);
    s_.set_scope(sum_, "register");
    const Loop depth = s_.unroll_steps(m_.depth_lane, m_.instruction);
    if (s_.choose_switch("prefetch_w", true)) s_.prefetch_next_panel(m_.weights, depth);
    s_.unroll({tiles.inner, block});
    s_.vectorize(lane);
  }

  // Transforms the blocks of input channels one by one, each with its padded copy if that stays in
  // the cache.
  void transform_input(const Transform& columns) {
    s_.reorder({columns.block, columns.tile});
    s_.compute_at(m_.rows.stage, s_.has(columns.tile) ? columns.tile : columns.block);
    transform(moved(m_.rows));
    transform(columns);
    if (!s_.has(columns.block)) return s_.map_nest(m_.pad);
    ScheduleBuilder near = s_;
    near.compute_at(m_.pad, columns.block);
    if (!stays_near(*near.bytes_of(m_.pad.buffer()), s_.target())) return s_.map_nest(m_.pad);
    s_ = near;
    s_.set_scope(m_.pad, "thread");
    s_.vectorize(s_.loops_of(m_.pad).back());
  }

  ScheduleBuilder& s_;
  const WinogradStages& m_;
  const Problem problem_;
  const Blocking blocking_;
  Stage sum_;
  // Loops of y: blocks of tiles, groups of channels, channels of a group, columns of a tile
  Loop block_, group_, channel_, column_;
};

}  // namespace

void schedule_winograd(ScheduleBuilder& s, const WinogradStages& m) {
  WinogradSchedule(s, m).run();
}

}  // namespace tw
