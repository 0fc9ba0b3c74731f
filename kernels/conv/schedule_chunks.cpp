// Convolutions whose sums pass through memory between chunks of input channels, and what decides
// about such blocks: with narrow vectors every tile reads so many cache lines in so few cycles that
// weights and pixels from the second-level cache hold it up.
#include <algorithm>

#include "kernels/conv/schedule.h"

namespace tw::conv {

// Tiles of so many sums work for as long as their operands take
constexpr int64_t kManyRegisters = 32;

namespace {

int64_t usual_lines(const ScheduleBuilder& s, std::optional<int64_t> lines, int64_t panels) {
  constexpr int64_t kFar = 4;  // caches that the input is as large as
  const auto input = s.bytes_of("x"), weights = s.bytes_of("w");
  const int64_t l2 = s.target().l2_bytes, images = s.extent("n").value_or(1);
  if (s.target().vector_registers >= kManyRegisters || !input || !weights || !lines ||
      *input / images <= kFar * l2)
    return 0;
  const int64_t all = *input / images,
                height =
                    as_const(s.kernel().buffer(*s.kernel().find_buffer("x")).shape[2]).value_or(1);
  const int64_t halo = std::max<int64_t>(
                           0, s.extent("k0").value_or(1) - (height + *lines - 1) / *lines) *
                       (all / height);
  int64_t best = 0;
  for (int64_t n = 1; n < *lines; ++n)
    if (*lines % n == 0 && all / *lines * n + halo + *weights / panels <= 3 * l2 / 4) best = n;
  return best && 2 * (all + *weights * (*lines / best)) <= all * panels ? best : 0;
}

}  // namespace

int64_t lines_in_block(const ScheduleBuilder& s, std::optional<int64_t> lines, int64_t panels) {
  const int64_t usual = usual_lines(s, lines, panels);
  if (!lines || panels < 2) return usual;
  std::vector<int64_t> others = divisors(*lines, *lines - 1);
  others.insert(others.begin(), 0);
  return s.choose("block_lines", usual, others);
}

int64_t chunk_blocks(const ScheduleBuilder& s, const OutputLoops& o, const Tile& tile) {
  const auto weights = s.bytes_of("w"), blocks = s.extent("rc");
  const bool planes = s.extent(o.row) && std::ranges::all_of(o.outer, [&](const std::string& loop) {
                        return loop[0] != 'r' && s.extent(loop);
                      });
  // Else a fused tile, of more pixels than one of pairs, gains nothing
  const bool taps = s.reduce_loops_of("acc").size() > 2;
  if (!planes || !weights || !blocks || !s.has_loop("rl") || (!taps && tile.paired.empty()))
    return 0;
  const int64_t l1 = s.target().l1_bytes, panel = *weights / tile.panels;
  const bool pays = s.target().vector_registers < kManyRegisters && 2 * panel >= l1;
  const int64_t step = tile.paired.empty() ? 1 : 2;  // pairs of two blocks are one straight line
  int64_t chunk = 0;
  std::vector<int64_t> others = {0};
  for (int64_t n = step; n < *blocks; n += step) {
    if (*blocks % n != 0) continue;
    if (pays && panel / *blocks * n <= 3 * l1 / 8) chunk = n;
    others.push_back(n);
  }
  return s.choose("chunk", chunk, others);
}

namespace {

// Loops of y from the outside in, blocks of lines where they pay, and those outside of the sums.
struct Nest {
  std::vector<std::string> order, outer;
};
Nest output_nest(ScheduleBuilder& s, const OutputLoops& o, const Tile& tile) {
  std::vector<std::string> rows = o.outer;
  rows.push_back(o.row);
  Nest nest{{}, {"n"}};
  const int64_t lines = *s.extent(rows.front()), unit = !o.outer.empty()           ? 1
                                                        : lines % tile.pixels == 0 ? tile.pixels
                                                                                   : lines;
  if (const int64_t n = rows.size() > 2 ? 0 : lines_in_block(s, lines / unit, tile.panels);
      n > 0 && n < lines / unit) {
    s.split(rows.front(), n * unit, Tail::guard, "b0", "b1");
    rows.front() = "b1";
    nest.outer.push_back("b0");
  }
  if (tile.vectors > 1) s.split("c", tile.vectors, Tail::guard, "c0", "c1");
  nest.outer.push_back(tile.vectors > 1 ? "c0" : "c");
  nest.order = nest.outer;
  nest.order.insert(nest.order.end(), rows.begin(), rows.end());
  nest.order.insert(nest.order.end(), {"c1", o.lane});
  return nest;
}

}  // namespace

void schedule_chunks(ScheduleBuilder& s, const OutputLoops& o, const Tile& tile, int64_t chunk) {
  const bool pointwise = reduce_order(s.reduce_loops_of("acc")).size() == 2;
  s.split("rc", chunk, Tail::guard, "rb", "rci");
  s.rfactor("acc", "rb", "accb");
  const Nest nest = output_nest(s, o, tile);
  s.reorder(nest.order);
  s.compute_at("acc", nest.outer.back());
  s.set_scope("acc", "thread");
  const std::string tiles = "acc_w0";
  s.split("acc_a" + o.row, tile.pixels, Tail::guard, tiles, "acc_w1");
  std::vector<std::string> sums = {"acc_rb"};
  for (const std::string& loop : o.outer) sums.push_back("acc_a" + loop);
  sums.insert(sums.end(), {tiles, "acc_w1", "acc_ac", "acc_al"});
  s.reorder(sums);
  s.decompose("acc", "acc_rb");
  std::vector<std::string> depth = reduce_order(s.reduce_loops_of("accb"));
  if (tile.paired.empty()) {
    s.compute_at("accb", tiles);
    s.accumulate("accb", depth, {"accb_a" + o.row, "accb_ac"}, "accb_al");
    s.set_scope("accb", "register");
  } else {
    depth = accumulate_pairs(s, "accb", tiles, tile.paired, depth, {"a" + o.row}, "al");
  }
  if (pointwise && !depth.empty()) s.prefetch_over("x", depth.front(), depth.back());
  // The next chunk of weights is asked for while this one is in use, a line at a time.
  if (!depth.empty() &&
      !s.prefetch_next_panel("w", tile.paired.empty() ? depth[depth.size() - 2] : depth.back()))
    s.prefetch_panels("w", depth.back(), !tile.paired.empty());
  for (const char* loop : {"acc_w1", "acc_ac", "c1"}) s.unroll(loop);
  for (const std::string& loop : {std::string("acc_al"), std::string("acc_al_init"), o.lane})
    s.vectorize(loop);
  s.parallelize(nest.outer, "yp");
  skip_padding(s, tiles, depth, false);
}

}  // namespace tw::conv
