// Winograd convolutions. Blocks of T tiles: their transformed input, then for every group of output channels the products
// (a register tile of MR tiles by V channel vectors over all input channels, for each of the A*A points) and the output
// transform. With few blocks the whole input is transformed first, and threads share channel groups and blocks.
#include <algorithm>

#include "autotune/spaces/space.h"

namespace tw {
namespace {

struct Problem {
  int64_t points, in_channels, tiles, vectors, groups;   // A, .., channel groups of the output
};

Problem problem_of(const ScheduleBuilder& s) {
  const Kernel& k = s.kernel();
  const std::vector<Expr>&v = k.buffer(*k.find_buffer("v")).shape, &w = k.buffer(*k.find_buffer("w")).shape, &acc = k.buffer(*k.find_buffer("acc")).shape;
  auto at = [](const Expr& e) { return *as_const(e); };
  return {at(v[0]), at(v[2]) * at(v[4]), at(v[3]), at(w[5]) / at(acc.back()), at(w[0])};
}

struct Blocking {
  int64_t tiles, rows;   // T, MR
  bool whole_input;      // transformed before everything else
};

// Cycles of one point and input channel, up to a factor: products with the loads that hide behind them, and what comes of
// reading the weights once a block (kWeightCycles a vector).
Blocking choose_blocking(const Problem& p, const Target& target) {
  constexpr double kWeightCycles = 0.8, kFewestProducts = 8, kTileCycles = 20;
  constexpr int64_t kMostTiles = 56;
  const int64_t most_rows = std::max<int64_t>(1, (target.vector_registers - 1 - p.vectors) / p.vectors);
  Blocking best{};
  double best_cost = 0;
  for (int64_t tiles = 1; tiles <= std::min(p.tiles, kMostTiles); ++tiles) {
    const int64_t blocks = (p.tiles + tiles - 1) / tiles;
    const bool whole_input = blocks < 4 * target.cores;
    const int64_t shares = whole_input ? blocks * p.groups : blocks;
    const double balance = static_cast<double>((shares + target.cores - 1) / target.cores * target.cores) / static_cast<double>(shares);
    for (int64_t rows = 1; rows <= std::min(tiles, most_rows); ++rows) {
      const double products = std::max(static_cast<double>(rows * p.vectors), kFewestProducts), loads = static_cast<double>(rows + p.vectors) / 2;
      const double cost = balance * static_cast<double>(blocks) *
                          (static_cast<double>((tiles + rows - 1) / rows) * (std::max(products, loads) + kTileCycles / static_cast<double>(p.in_channels)) + kWeightCycles * static_cast<double>(p.vectors));
      if (best.tiles && cost > best_cost * 0.999) continue;
      best = {tiles, rows, whole_input};
      best_cost = cost;
    }
  }
  return best;
}

// One-dimensional transforms: `fixed` stays a loop, the transformed axis is unrolled so that its rows share what they can.
void transform(ScheduleBuilder& s, const std::string& fixed, const std::string& along, const std::string& lane) {
  s.reorder({fixed, along, lane});
  s.unroll(along);
  s.vectorize(lane);
}

void products(ScheduleBuilder& s, const Blocking& b) {
  std::string row = "acc_ap";
  if (b.rows < b.tiles) {
    s.split("acc_ap", b.rows, Tail::shift, "acc_p0", "acc_p1");
    row = "acc_p1";
  }
  std::string at = b.rows < b.tiles ? "acc_p0" : "acc_ab";
  s.reorder({"acc_aa", "acc_ab", "acc_p0", row, "acc_ac", "acc_al"});
  s.compute_at("sum", at);
  s.accumulate("sum", {"kc", "kl"}, {"sum_ap", "sum_ac"}, "sum_al");
  s.set_scope("sum", "register");
  s.unroll(row);
  s.unroll("acc_ac");
  s.vectorize("acc_al");
}

}  // namespace

void schedule_winograd(ScheduleBuilder& s) {
  const Problem p = problem_of(s);
  const Blocking b = choose_blocking(p, s.target());
  const int64_t m = p.points - 2;
  s.map_nest("pad");
  s.cache_write("acc", "sum", "register");

  s.split("s0", m, Tail::guard, "h0", "h1");
  s.split("s1", m, Tail::guard, "w0", "w1");
  s.split("c", p.vectors, Tail::guard, "c0", "c1");
  s.reorder({"n", "h0", "w0", "c0", "c1", "h1", "w1", "l"});
  s.fuse({"n", "h0", "w0"}, "p");
  s.split("p", b.tiles, Tail::shift, "p0", "p1");
  if (b.whole_input) s.reorder({"c0", "p0", "p1", "c1", "h1", "w1", "l"});
  else s.reorder({"p0", "c0", "p1", "c1", "h1", "w1", "l"});

  s.compute_at("o", "c1");
  s.compute_at("z", "c1");
  s.compute_at("acc", b.whole_input ? "p0" : "c0");
  s.set_scope("acc", "thread");
  transform(s, "z_zb", "z_zi", "z_zl");
  transform(s, "o_oi", "o_oj", "o_ol");
  s.unroll("w1");
  s.vectorize("l");
  products(s, b);

  std::string prefix = b.whole_input ? "" : "v_";
  if (!b.whole_input) {
    s.compute_at("v", "p0");
    s.set_scope("v", "thread");
  }
  if (s.has_loop(prefix + "vc")) s.compute_at("vr", prefix + "vc");
  transform(s, "vr_rw", "vr_ra", "vr_rl");
  transform(s, prefix + "va", prefix + "vb", prefix + "vl");
  if (b.whole_input) {
    s.parallelize({"vp", "vc"}, "vt");
    s.parallelize({"c0", "p0"}, "yp");
  } else {
    s.parallel("p0");
  }
}

}  // namespace tw
