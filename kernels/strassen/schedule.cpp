// One level of Strassen: the sums of the left operand first; then for every group of output columns
// and block of rows the seven products, each in register tiles over the whole depth, and the four
// parts of the output that they make. All tiles of a block pass the weights of one product before
// those of the next, which wait in memory: the second-level cache holds them and the block's
// products. Where it holds no products of more than a tile, they stay in the first-level cache and
// the weights pass once a tile. Where the sums do not fit the second-level cache but the weights
// do, blocks of rows go one by one, sums and all.
#include <algorithm>

#include "kernels/common/register_tile.h"
#include "kernels/families.h"

namespace tw {
namespace {

// Tiles of rows in a block, of `tiles` in all: the most whose sums fill half of the cache and that
// divide evenly among the cores. 0: no blocks.
int64_t block_tiles(int64_t tiles, int64_t tile_bytes, int64_t weight_bytes, const Target& target) {
  if (tiles * tile_bytes <= target.l2_bytes || 2 * weight_bytes > target.l2_bytes) return 0;
  for (int64_t most : {target.l2_bytes / 2, target.l2_bytes})
    for (int64_t n = most / tile_bytes; n > 0; --n)
      if (tiles % n == 0 && tiles / n % target.cores == 0) return n;
  return 0;
}

// Tiles of rows that pass one product's weights before the next one's: the most whose products fit
// an eighth of the second-level cache and that give every core the same number of blocks, or all.
int64_t passing_tiles(int64_t tiles, bool even, int64_t groups, int64_t tile_bytes,
                      const Target& target) {
  const int64_t most = std::min(tiles, target.l2_bytes / 8 / tile_bytes);
  for (int64_t n = most; n > 1; --n)
    if ((n == tiles || (even && tiles % n == 0)) && tiles / n * groups % target.cores == 0)
      return n;
  return 1;
}

}  // namespace

void schedule_strassen(ScheduleBuilder& s) {
  const Kernel k = s.kernel();  // as lowered
  auto at = [](const Expr& e) { return *as_const(e); };
  const std::vector<Expr>&acc = k.buffer(*k.find_buffer("acc")).shape,
        &w = k.buffer(*k.find_buffer("w")).shape;
  const int64_t half_rows = at(acc[1]), half_blocks = at(acc[2]), block = at(acc[3]),
                vectors = at(w[4]) / block;
  std::vector<int64_t> others;
  for (int64_t n = 1; s.open() && n <= half_rows && n <= s.target().vector_registers; ++n)
    if (!s.rules() || fits_registers(s.target(), {n, vectors})) others.push_back(n);
  const int64_t rows = s.choose("rows", strassen_rows(half_rows, vectors, s.target()), others),
                tiles = (half_rows + rows - 1) / rows;
  const bool blocked = s.has_loop("s0"), even = half_rows % rows == 0;
  const std::optional<int64_t> weight_bytes = s.bytes_of("w");
  if (!blocked) s.split("j", block, Tail::guard, "c", "l");
  s.cache_write("acc", "sum", "register");

  s.split(blocked ? "s0" : "i", half_rows, Tail::guard, "u", "r");
  s.split("c", half_blocks, Tail::guard, "v", "g");
  s.split("g", vectors, Tail::guard, "c0", "c1");
  const int64_t depth = at(w[2]) * block;
  const int64_t usual_own =
      even ? block_tiles(tiles, 7 * rows * depth * 4, *weight_bytes, s.target()) : 0;
  // Tiles of a block with sums of its own
  const int64_t own = std::min(s.choose("own_tiles", usual_own, {0, 1, 2, 4, 8}), even ? tiles : 0);
  const int64_t usual_passing = passing_tiles(tiles, even, half_blocks / vectors,
                                              7 * rows * vectors * block * 4, s.target());
  const int64_t passing =
      own > 0
          ? 1
          : std::min(s.choose("passing_tiles", usual_passing, {1, 2, 3, 4, 6, 8, 12, 16}), tiles);
  const int64_t in_block = std::max(own, passing);
  const bool blocks = own > 0 || (passing > 1 && passing < tiles);
  if (blocks) s.split("r", rows * in_block, Tail::guard, "rb", "ri");
  s.split(blocks ? "ri" : "r", rows, Tail::shift, "r0", "r1");
  const bool rows_outside = own > 0 ||
                            (blocks && s.choose_switch("rows_outside", takes_rows(s, "s")));
  if (rows_outside) s.reorder({"n", "rb", "c0", "r0", "r1", "c1", "u", "v", "l"});
  else s.reorder({"n", "c0", "rb", "r0", "r1", "c1", "u", "v", "l"});
  if (passing > 1) {
    s.compute_at("acc", blocks && !rows_outside ? "rb" : "c0");
    s.set_scope("acc", "thread");
    s.split("acc_ai", rows, Tail::shift, "acc_r0", "acc_r1");
    s.reorder({"acc_aq", "acc_r0", "acc_r1", "acc_ac", "acc_al"});
    s.compute_at("sum", "acc_r0");
  } else {
    s.compute_at("acc", "r0");
    s.set_scope("acc", "stack");
    s.compute_at("sum", "acc_aq");
  }
  s.accumulate("sum", {"kc", "kl"}, {"sum_ai", "sum_ac"}, "sum_al");
  s.set_scope("sum", "register");
  // Hints help weights that are used once, and are in the way where a large panel comes from the
  // third-level cache again and again.
  const std::string depth_loop = s.has_loop("kl") ? "kl" : "kc";
  const bool hints = s.choose_switch("prefetch_w", true);
  if (hints && !s.prefetch_next_panel("w", depth_loop) && half_rows <= rows)
    s.prefetch_weights("w", depth_loop, s.kRowsAhead);
  s.unroll(passing > 1 ? "acc_r1" : "acc_ai");
  s.unroll("acc_ac");
  s.vectorize("acc_al");
  for (const char* loop : {"u", "v"}) s.unroll(loop);  // four outputs share seven loads
  s.vectorize("l");
  if (own > 0) {
    s.compute_at("s", "rb");
    s.set_scope("s", "thread");
    s.unroll("s_sq");
    s.vectorize("s_sl");
    s.parallelize({"n", "rb"}, "yp");
    return;
  }
  s.unroll("sq");
  s.vectorize("sl");
  if (even) {  // a tile's sums lie in the order in which they are read
    s.layout("s", {"q", "b", "i", "l"},
             {var("q"), floor_div(var("i"), Expr(rows)), var("b"), floor_mod(var("i"), Expr(rows)),
              var("l")});
    s.split("si", rows, Tail::guard, "st", "sr");
    s.reorder({"st", "sb", "sr"});
    s.parallelize({"st", "sb"}, "sp");
  } else {
    s.parallelize({"sb", "si"}, "sp");
  }
  if (rows_outside) s.parallelize({"n", "rb", "c0"}, "yp");
  else s.parallelize({"n", "c0", passing > 1 ? "rb" : "r0"}, "yp");
}

}  // namespace tw
