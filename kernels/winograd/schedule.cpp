// Winograd convolutions. Blocks of T tiles: their transformed input, then for every group of output
// channels the products (a register tile of MR tiles by V channel vectors over all input channels,
// for each of the A*A points) and the output transform. With few blocks the whole input is
// transformed first, and threads share channel groups and blocks.
#include <algorithm>

#include "ir/core_rates.h"
#include "kernels/common/register_tile.h"
#include "kernels/families.h"

namespace tw {
namespace {

struct Problem {
  // Of y, that a tile makes: m, or its windows where a pool follows
  int64_t high, wide;
  int64_t points, in_channels, tiles, vectors, groups;  // A, .., channel groups of the output
  // Tiles of a row of the output; the padded input, a block of channels
  int64_t row_tiles, images, plane_bytes;
};

Problem problem_of(const ScheduleBuilder& s) {
  const Kernel& k = s.kernel();
  auto shape = [&](const char* name) { return k.buffer(*k.find_buffer(name)).shape; };
  const std::vector<Expr> v = shape("v"), w = shape("w"), acc = shape("acc"), padded = shape("xp"),
                          o = shape("o");
  auto at = [](const Expr& e) { return *as_const(e); };
  const std::vector<int64_t> window = pool_window(s);
  const int64_t tile = at(o[2]), high = window.empty() ? tile : tile / window[0],
                wide = window.empty() ? tile : tile / window[1];
  const int64_t row_tiles = (*s.extent("s1") + wide - 1) / wide;
  return {high,          wide,
          at(v[0]),      at(v[2]) * at(v[4]),
          at(v[3]),      at(w[5]) / at(acc.back()),
          at(w[0]),      row_tiles,
          at(padded[0]), *s.bytes_of("xp") / at(padded[1])};
}

struct Blocking {
  int64_t tiles, rows;  // T, MR
  bool whole_input;     // transformed before everything else
};

// The padded copy of a block of input channels leaves room for what is made of it.
bool stays_near(int64_t bytes, const Target& target) { return 2 * bytes <= target.l2_bytes; }

// Blocks of whole rows of tiles read a part of the input that is known.
bool whole_rows(const Problem& p, int64_t tiles) {
  return p.images == 1 && tiles % p.row_tiles == 0 && p.tiles % tiles == 0;
}

// Cycles of one point and input channel, up to a factor: products with the loads that hide behind
// them, what comes of reading the weights once a block (weight_cycles a vector, 0.8 on Zen 4), and
// of an input that the second-level cache does not hold: transformed (kSpillCycles a tile,
// kFarCycles for every group of channels that reads a good part of the last cache) or before that
// (kStrayCycles a tile).
Blocking choose_blocking(const Problem& p, const Target& target) {
  const CoreRates rates = core_rates(target);
  // Products in the time of a Zen 4 core's
  const double a_step = target.vector_bits >= 512 ? rates.multiply_adds : rates.multiply_adds / 2;
  const double weight_cycles = 0.8 * a_step * CoreRates{}.l3_bytes / rates.l3_bytes;
  constexpr double kFewestProducts = 8, kTileCycles = 20, kSpillCycles = 0.4, kFarCycles = 0.4,
                   kStrayCycles = 0.6;
  constexpr int64_t kMostTiles = 56;
  const int64_t lanes = target.lanes(4),
                most_rows = std::max<int64_t>(
                    1, (target.vector_registers - 1 - p.vectors) / p.vectors);
  const int64_t tile_bytes = p.points * p.points * 4 * (p.in_channels + p.vectors * lanes);
  Blocking best{};
  double best_cost = 0;
  for (int64_t tiles = 1; tiles <= std::min(p.tiles, kMostTiles); ++tiles) {
    const int64_t blocks = (p.tiles + tiles - 1) / tiles;
    for (const bool whole_input : {false, true}) {
      const int64_t shares = whole_input ? blocks * p.groups : blocks,
                    held = whole_input ? p.tiles : tiles;
      const double balance = static_cast<double>((shares + target.cores - 1) / target.cores *
                                                 target.cores) /
                             static_cast<double>(shares);
      double input = held * tile_bytes > target.l2_bytes ? kSpillCycles : 0;
      if (4 * held * tile_bytes > target.l3_bytes)
        input += kFarCycles * static_cast<double>(p.groups);
      if (whole_input ? !stays_near(p.plane_bytes, target) : !whole_rows(p, tiles))
        input += kStrayCycles;
      for (int64_t rows = 1; rows <= std::min(tiles, most_rows); ++rows) {
        const double products = std::max(static_cast<double>(rows * p.vectors), kFewestProducts),
                     loads = static_cast<double>(rows + p.vectors) / 2;
        const double panel = static_cast<double>((tiles + rows - 1) / rows) *
                                 (std::max(products, loads) +
                                  kTileCycles / static_cast<double>(p.in_channels)) +
                             weight_cycles * static_cast<double>(p.vectors);
        const double cost = balance * (static_cast<double>(blocks * p.groups) * panel +
                                       static_cast<double>(p.tiles) * input);
        if (best.tiles && cost > best_cost * 0.999) continue;
        best = {tiles, rows, whole_input};
        best_cost = cost;
      }
    }
  }
  return best;
}

// The usual blocking, or what a point makes of it.
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

// One-dimensional transforms: `fixed` stays a loop, the transformed axis is unrolled so that its
// rows share what they can.
void transform(ScheduleBuilder& s, const std::string& fixed, const std::string& along,
               const std::string& lane) {
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
  std::string depth = "kl";
  s.unroll_part(depth);
  if (s.choose_switch("prefetch_w", true)) s.prefetch_next_panel("w", depth);
  s.unroll(row);
  s.unroll("acc_ac");
  s.vectorize("acc_al");
}

// Blocks of input channels one by one, each with its padded copy where that stays in the cache.
void transform_input(ScheduleBuilder& s, const std::string& prefix) {
  const std::string block = prefix + "vc", tile = prefix + "vp";
  s.reorder({block, tile});
  s.compute_at("vr", s.has_loop(tile) ? tile : block);
  transform(s, "vr_rw", "vr_ra", "vr_rl");
  transform(s, prefix + "va", prefix + "vb", prefix + "vl");
  if (!s.has_loop(block)) return s.map_nest("pad");
  ScheduleBuilder near = s;
  near.compute_at("pad", block);
  if (!stays_near(*near.bytes_of("xp"), s.target())) return s.map_nest("pad");
  s = near;
  s.set_scope("xp", "thread");
  s.vectorize("pad_pad4");
}

}  // namespace

void schedule_winograd(ScheduleBuilder& s) {
  const Problem p = problem_of(s);
  const Blocking b = blocking_of(s, p);
  s.cache_write("acc", "sum", "register");
  // The pool takes its windows out of the transformed tile
  if (s.has_stage("conv")) s.compute_inline("conv");

  s.split("s0", p.high, Tail::guard, "h0", "h1");
  s.split("s1", p.wide, Tail::guard, "w0", "w1");
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
  transform_input(s, prefix);
  if (b.whole_input) {
    s.parallelize(s.has_stage("pad") && s.loops_of("pad").front() == "vc"
                      ? std::vector<std::string>{"vc"}
                      : std::vector<std::string>{"vc", "vp"},
                  "vt");
    s.parallelize({"c0", "p0"}, "yp");
  } else {
    s.parallel("p0");
  }
}

}  // namespace tw
