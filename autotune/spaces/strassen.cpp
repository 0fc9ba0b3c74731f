// One level of Strassen: the sums of the left operand first; then for every group of output columns and tile of rows the seven
// products, each a register tile over the whole depth, and the four tiles of the output that they make. The products of a tile
// stay in the first-level cache. Where the sums do not fit the second-level cache but the weights do, blocks of rows go one by one.
#include "autotune/spaces/space.h"

namespace tw {
namespace {

constexpr int64_t kRowsAhead = 16;

// Tiles of rows in a block, of `tiles` in all: the most whose sums fill half of the cache and that divide evenly among the cores.
// 0: no blocks.
int64_t block_tiles(int64_t tiles, int64_t tile_bytes, int64_t weight_bytes, const Target& target) {
  if (tiles * tile_bytes <= target.l2_bytes || 2 * weight_bytes > target.l2_bytes) return 0;
  for (int64_t most : {target.l2_bytes / 2, target.l2_bytes})
    for (int64_t n = most / tile_bytes; n > 0; --n)
      if (tiles % n == 0 && tiles / n % target.cores == 0) return n;
  return 0;
}

}  // namespace

void schedule_strassen(ScheduleBuilder& s) {
  const Kernel k = s.kernel();   // as lowered
  auto at = [](const Expr& e) { return *as_const(e); };
  const std::vector<Expr>&acc = k.buffer(*k.find_buffer("acc")).shape, &w = k.buffer(*k.find_buffer("w")).shape;
  const int64_t half_rows = at(acc[1]), half_blocks = at(acc[2]), block = at(acc[3]), vectors = at(w[4]) / block;
  const int64_t rows = strassen_rows(half_rows, vectors, s.target());
  const bool blocked = s.has_loop("s0");
  if (!blocked) s.split("j", block, Tail::guard, "c", "l");
  s.cache_write("acc", "sum", "register");

  s.split(blocked ? "s0" : "i", half_rows, Tail::guard, "u", "r");
  s.split("c", half_blocks, Tail::guard, "v", "g");
  s.split("g", vectors, Tail::guard, "c0", "c1");
  int64_t weight_bytes = 4;
  for (const Expr& e : w) weight_bytes *= at(e);
  const int64_t depth = at(w[2]) * block;
  const int64_t tiles = half_rows % rows == 0 ? block_tiles(half_rows / rows, 7 * rows * depth * 4, weight_bytes, s.target()) : 0;
  if (tiles > 0) s.split("r", rows * tiles, Tail::guard, "rb", "ri");
  s.split(tiles > 0 ? "ri" : "r", rows, Tail::shift, "r0", "r1");
  s.reorder({"n", "rb", "c0", "r0", "r1", "c1", "u", "v", "l"});
  s.compute_at("acc", "r0");
  s.set_scope("acc", "stack");
  s.compute_at("sum", "acc_aq");
  s.accumulate("sum", {"kc", "kl"}, {"sum_ai", "sum_ac"}, "sum_al");
  s.set_scope("sum", "register");
  // Hints help weights that are used once, and are in the way where a large panel comes from the third-level cache again and again.
  const std::string depth_loop = s.has_loop("kl") ? "kl" : "kc";
  if (!s.prefetch_next_panel("w", depth_loop) && half_rows <= rows) s.prefetch_weights("w", depth_loop, kRowsAhead);
  s.unroll("acc_ai");
  s.unroll("acc_ac");
  s.vectorize("acc_al");
  for (const char* loop : {"c1", "u", "v"}) s.unroll(loop);
  s.vectorize("l");
  if (tiles > 0) {
    s.compute_at("s", "rb");
    s.set_scope("s", "thread");
  }
  s.unroll(tiles > 0 ? "s_sq" : "sq");
  s.vectorize(tiles > 0 ? "s_sl" : "sl");
  if (tiles > 0) {
    s.parallelize({"n", "rb"}, "yp");
  } else {
    s.parallelize({"sb", "si"}, "sp");
    s.parallelize({"n", "c0", "r0"}, "yp");
  }
}

}  // namespace tw
