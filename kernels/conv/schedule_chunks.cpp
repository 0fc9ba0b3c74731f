// Schedules convolutions whose sums pass through memory between chunks of input channels. With
// narrow vectors, every tile reads so many cache lines in so few cycles that weights and pixels
// from the second-level cache slow it down. This file also chooses the blocks of lines and the
// chunks.
#include <algorithm>

#include "kernels/conv/schedule.h"

namespace tw::conv {

// With this many registers, a tile's sums take as long as the loads of its operands.
constexpr int64_t kManyRegisters = 32;

namespace {

int64_t usual_lines(const ScheduleBuilder& s, const ConvStages& m, std::optional<int64_t> lines,
                    int64_t panels) {
  constexpr int64_t kFar = 4;  // size of a far too large input, in second-level caches
  const auto input = s.bytes_of(m.input), weights = s.bytes_of(m.weights);
  const int64_t l2 = s.target().l2_bytes, images = s.extent(m.out.loops.image).value_or(1);
  if (s.target().vector_registers >= kManyRegisters || !input || !weights || !lines ||
      *input / images <= kFar * l2)
    return 0;
  const int64_t all = *input / images, height = as_const(s.buffer(m.input).shape[2]).value_or(1);
  const int64_t taps = s.extent(m.taps.front()).value_or(1);
  const int64_t halo = std::max<int64_t>(0, taps - (height + *lines - 1) / *lines) * (all / height);
  int64_t best = 0;
  for (int64_t n = 1; n < *lines; ++n)
    if (*lines % n == 0 && all / *lines * n + halo + *weights / panels <= 3 * l2 / 4) best = n;
  return best && 2 * (all + *weights * (*lines / best)) <= all * panels ? best : 0;
}

}  // namespace

int64_t lines_in_block(const ScheduleBuilder& s, const ConvStages& m, std::optional<int64_t> lines,
                       int64_t panels) {
  const int64_t usual = usual_lines(s, m, lines, panels);
  if (!lines || panels < 2) return usual;
  std::vector<int64_t> others = divisors(*lines, *lines - 1);
  others.insert(others.begin(), 0);
  return s.choose("block_lines", usual, others);
}

int64_t chunk_blocks(const ScheduleBuilder& s, const ConvStages& m, const Tile& tile) {
  const bool paired = m.paired.defined();
  const ConvLoops& y = m.out.loops;
  const auto weights = s.bytes_of(m.weights), blocks = s.extent(m.channels);
  const bool planes = s.extent(y.row) && std::ranges::all_of(y.lines, [&](const Loop& l) {
                        return s.extent(l).has_value();
                      });
  // Without taps, a fused tile has more pixels than a paired one and gains nothing from chunks.
  const bool taps = std::ranges::any_of(m.taps, &Loop::defined);
  const bool in_blocks = m.channel_lanes.defined();
  if (!planes || !weights || !blocks || (!in_blocks && y.phases.empty()) || (!taps && !paired))
    return 0;
  int64_t phases = 1;
  for (const Loop& phase : y.phases) phases *= s.extent(phase).value_or(1);
  const int64_t l1 = s.target().l1_bytes, panel = *weights / tile.panels / phases;
  // A panel's pixels read only the weights of one phase at a time, so these may stay in the
  // second-level cache.
  const bool far = phases > 1 ? 2 * panel >= s.target().l2_bytes : 2 * panel >= l1;
  const bool pays = s.target().vector_registers < kManyRegisters && far;
  const int64_t step = paired ? 2 : 1;  // pairs from two blocks form one straight line
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

// The loops of y from the outside in, with blocks of lines where these are worthwhile, and the
// loops outside the sums
struct Nest {
  Loops order, outer;
  Loop channel;  // loop in a panel
};
Nest output_nest(ScheduleBuilder& s, const ConvStages& m, const Tile& tile) {
  const ConvLoops& y = m.out.loops;
  Loops rows = y.lines;
  rows.push_back(y.row);
  Nest nest{{}, {y.image}, {}};
  const int64_t lines = *s.extent(rows.front());
  const int64_t whole_tiles = lines % tile.pixels == 0 ? tile.pixels : lines;
  const int64_t unit = y.lines.empty() ? whole_tiles : 1;
  const int64_t n = rows.size() > 2 ? 0 : lines_in_block(s, m, lines / unit, tile.panels);
  if (n > 0 && n < lines / unit) {
    const auto cut = s.split(rows.front(), n * unit, Tail::guard, "b0", "b1");
    rows.front() = cut.inner;
    nest.outer.push_back(cut.outer);
  }
  ScheduleBuilder::Cut channel{y.channel, {}};
  if (tile.vectors > 1) channel = s.split(y.channel, tile.vectors, Tail::guard, "c0", "c1");
  nest.channel = channel.inner;
  nest.outer.push_back(channel.outer);
  nest.outer.insert(nest.outer.end(), y.phases.begin(), y.phases.end());
  nest.order = nest.outer;
  nest.order.insert(nest.order.end(), rows.begin(), rows.end());
  nest.order.insert(nest.order.end(), {channel.inner, y.lane});
  return nest;
}

}  // namespace

void schedule_chunks(ScheduleBuilder& s, const ConvStages& m, const Tile& tile, int64_t chunk) {
  const bool paired = m.paired.defined();
  const bool pointwise = std::ranges::none_of(m.taps, &Loop::defined);
  const auto blocks = s.split(m.channels, chunk, Tail::guard, "rb", "rci");
  const Stage part = s.rfactor(m.acc, blocks.outer, "accb");
  const Nest nest = output_nest(s, m, tile);
  s.reorder(nest.order);
  s.compute_at(m.acc, nest.outer.back());
  s.set_scope(m.acc, "thread");
  const auto acc = [&](const Loop& loop) { return s.moved(m.acc, loop); };
  const Loop chunks = acc(blocks.outer), channel = acc(m.sums.channel), lane = acc(m.sums.lane);
  const auto row = s.split(acc(m.sums.row), tile.pixels, Tail::guard, "acc_w0", "acc_w1");
  Loops sums = {chunks};
  for (const Loop& line : m.sums.lines) sums.push_back(acc(line));
  sums.insert(sums.end(), {row.outer, row.inner, channel, lane});
  s.reorder(sums);
  s.decompose(m.acc, chunks);
  Depth depth = depth_of(m, blocks.inner);
  if (paired) {
    depth = accumulate_pairs(s, m, part, depth, row.outer);
  } else {
    s.compute_at(part, row.outer);
    s.accumulate(part, depth.loops, {s.moved(part, m.sums.row), s.moved(part, m.sums.channel)},
                 s.moved(part, m.sums.lane), m.instruction);
    s.set_scope(part, "register");
  }
  const Loops& loops = depth.loops;
  if (pointwise && !loops.empty()) s.prefetch_over(m.input, loops.front(), loops.back());
  // Prefetches the next chunk of weights a line at a time while this one is in use.
  if (!loops.empty() &&
      !s.prefetch_next_panel(m.weights, paired ? loops.back() : loops[loops.size() - 2]))
    s.prefetch_panels(m.weights, loops.back(), paired);
  s.unroll({row.inner, channel, nest.channel});
  s.vectorize(lane);
  s.vectorize(s.init_of(lane));
  s.vectorize(m.out.loops.lane);
  s.parallelize(nest.outer, "yp");
  skip_padding(s, m, row.outer, depth);
}

}  // namespace tw::conv
