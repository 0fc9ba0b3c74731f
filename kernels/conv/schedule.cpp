// Schedules convolutions. A tile of one output row's pixels times V channel vectors stays in
// registers over the whole reduction. Rule: TW * V + V + 1 registers at most. Kernel taps stay
// rolled, because overlapping taps in one block make LLVM spill. Before a pool, such tiles fill a
// buffer with the pool's windows, line by line.
#include "kernels/conv/schedule.h"

#include <algorithm>

#include "ir/kernel/sharing.h"
#include "ir/kernel/work.h"
#include "ir/simplify.h"
#include "kernels/common/register_tile.h"
#include "kernels/common/row_tile.h"
#include "kernels/schedule/tiles.h"

namespace tw {
namespace conv {
namespace {

// The taps along the row: the last tap loop that exists
Loop row_tap(const ConvStages& m) {
  Loop last;
  for (const Loop& tap : m.taps)
    if (tap.defined()) last = tap;
  return last;
}

}  // namespace

Depth depth_of(const ConvStages& m, const Loop& channels) {
  Depth depth;
  const bool in_blocks = m.channel_lanes.defined();
  for (const Loop& tap : m.taps)
    if (tap.defined()) depth.loops.push_back(tap);
  if (in_blocks) {
    depth.loops.insert(m.taps_outside ? depth.loops.end() : depth.loops.begin(), channels);
    depth.blocks = channels;
    depth.straight = {m.channel_lanes};
  }
  const Loop last = in_blocks ? m.channel_lanes : channels;
  if (last.defined()) depth.loops.push_back(last);
  return depth;
}

Depth accumulate_pairs(ScheduleBuilder& s, const ConvStages& m, const Stage& sums,
                       const Depth& depth, const Loop& at) {
  PairedSteps steps = tw::accumulate_pairs(
      s, {sums, m.paired, depth.loops, depth.blocks, {m.sums.row}, m.sums.lane}, at);
  return {std::move(steps.rolled), depth.blocks, std::move(steps.straight)};
}

// Separates the tiles at the ends of a row, so that no tile checks whether a tap is in the padding:
// the emitter drops such a tap if it is unrolled. A block's channels are unrolled if a product
// takes two operations, since a loop would then cost too much. Below unrolled taps one channel loop
// stays, as the innermost loop.
void skip_padding(ScheduleBuilder& s, const ConvStages& m, const Loop& tiles, const Depth& depth) {
  const Loop tap = row_tap(m);
  const Loops& loops = depth.loops;
  const bool channels_first = !m.depthwise && loops.size() > 1 &&
                              std::ranges::find(m.taps, loops.front()) == m.taps.end();
  s.partition_edges(tiles);
  for (const auto edge : ScheduleBuilder::kEdges) {
    const auto part = [&](const Loop& loop) { return s.at_edge(loop, edge); };
    const bool taps = m.depthwise || s.decides(part(tap));
    const bool rolled = channels_first && s.has(part(loops.front()));
    if (taps && rolled && !fuses_products(s.target())) {
      Loops order;
      for (const Loop& loop : loops) order.push_back(part(loop));
      std::ranges::rotate(order, order.begin() + 1);
      s.reorder(order);
    }
    if (taps) s.unroll(part(tap));
    if (fuses_products(s.target()) || (taps && !rolled)) continue;
    for (const Loop& loop : depth.straight) s.unroll(part(loop));
  }
}

}  // namespace conv

namespace {

using conv::Depth, conv::depth_of, conv::skip_padding;

constexpr int64_t kMostPlanes = 4;  // channels of a first layer, too few for a loop
// Pixels of a tile. Their sums, and inputs that neighbouring taps share, stay in registers.
constexpr int64_t kDepthwiseTile = 8;

// Splits the row of a 1x1 convolution, which holds all its pixels, if the channel panels alone
// cannot keep all threads equally busy. Its "wp" parts consist of whole tiles and overlap a little
// if their number does not divide the row. Overlap costs even on one thread, so it counts three
// times the time that threads lose by waiting. If no split is worthwhile, the row stays whole.
// even: all parts are equally long, for instructions that take whole tiles.
ScheduleBuilder::Cut split_for_threads(ScheduleBuilder& s, const Loop& row, int64_t tile,
                                       int64_t panels, bool even) {
  constexpr double kGoodEnough = 1.05, kMostOverlap = 0.05, kOverlapWeight = 3;
  constexpr int64_t kMostParts = 32;
  const int64_t extent = *s.extent(row), tiles = (extent + tile - 1) / tile;
  double best = 0;
  int64_t chunk = extent;
  for (int64_t parts = 1;
       parts <= std::min(tiles, kMostParts) && (parts == 1 || best > kGoodEnough); ++parts) {
    const int64_t size = parts == 1 ? extent : (tiles + parts - 1) / parts * tile;
    const double overlap = static_cast<double>(parts * size) / static_cast<double>(extent) - 1;
    if (size > extent || (extent + size - 1) / size != parts || overlap > kMostOverlap) continue;
    if (even && extent % size != 0) continue;
    double idle = 1;
    for (int64_t threads :
         {int64_t{2}, int64_t{3}, int64_t{4}, std::max<int64_t>(s.target().cores, 2)}) {
      const int64_t units = panels * parts, rounds = (units + threads - 1) / threads;
      idle = std::max(idle, static_cast<double>(rounds * threads) / static_cast<double>(units));
    }
    const double cost = idle + kOverlapWeight * overlap;
    if (parts == 1 || cost < best) best = cost, chunk = size;
  }
  const int64_t usual = (extent + chunk - 1) / chunk;
  const auto chunk_of = [&](int64_t parts) { return (tiles + parts - 1) / parts * tile; };
  const auto spread = [&](int64_t size) {
    return sharing(panels * ((extent + size - 1) / size), s.target().cores);
  };
  const auto spreads = [&](int64_t parts) {
    return !s.rules() || spreads_as_well(spread(chunk_of(parts)), spread(chunk));
  };
  std::vector<int64_t> others = {1, 2, 3, 4, 6, 8, 12, 16};
  const auto suits = [&](int64_t parts) {
    return spreads(parts) && (!even || extent % chunk_of(parts) == 0);
  };
  std::erase_if(others, [&](int64_t parts) { return !suits(parts); });
  if (const int64_t parts = s.choose("parts", usual, others); parts != usual && suits(parts))
    chunk = chunk_of(parts);
  if (chunk >= extent) return {{}, row};
  return s.split(row, chunk, extent % tile == 0 ? Tail::guard : Tail::shift, "wp", "wr");
}

// The most sums of a tile. Followers that evaluate functions need registers beside the sums; with
// fewer sums, none is spilled before them.
int64_t most_sums(const ScheduleBuilder& s, const ConvStages& m) {
  constexpr int64_t kFollowers = 8, kSimple = 8, kManyRegisters = 32;
  const int64_t registers = s.target().vector_registers;
  bool functions = false;
  for (const Stage& stage : {m.out.y, m.out.conv})
    if (const StoreRef store = s.store_of(stage))
      visit(store->value, [&](const Expr& e) {
        const auto* unary = as<expr::Unary>(e);
        functions |= unary && flops_of(unary->op) > kSimple;
      });
  return functions && registers >= kManyRegisters ? registers - kFollowers : registers;
}

// Blocked output: a register tile of pixels and vectors of channels
class BlockedSchedule {
 public:
  BlockedSchedule(ScheduleBuilder& s, const ConvStages& m)
      : s_(s),
        m_(m),
        y_(m.out.loops),
        paired_(m.paired.defined()),
        vectors_(tile_vectors()),
        panels_((s.extent(y_.channel).value_or(1) + vectors_ - 1) / vectors_),
        pooled_(m.out.window.empty() ? 1 : m.out.window.back()) {
    if (const auto row = s.extent(y_.row)) pixels_ = *row * pooled_;
    tile_ = in_tiles(s.target(), m.instruction) ? rows_of_tiles(s, m.instruction, m.sums.row)
            : pixels_                           ? tile_pixels(pixels_, pooled_, "pixels")
                                                : free_pixels();
  }

  void run() {
    if (in_tiles(s_.target(), m_.instruction)) return run_tiles();
    const conv::Tile tile{tile_, vectors_, panels_};
    const bool chunks = !whole() && together() == 1 && !m_.taps_outside;
    const int64_t chunk = chunks ? conv::chunk_blocks(s_, m_, tile) : 0;
    if (chunk > 0) return conv::schedule_chunks(s_, m_, tile, chunk);
    const Loops outer = cut_output();
    const Depth depth = sum();
    prefetch(depth);
    s_.unroll({lines_.inner, row_.inner, channel_.inner});
    s_.vectorize(y_.lane);
    s_.parallelize(outer, "yp");
    finish_edges(depth);
  }

 private:
  // Schedules sums in tile registers. Their copies are in the first-level cache when the output's
  // pixels are computed from them.
  void run_tiles() {
    const Loops outer = cut_output();
    accumulate_tiles(s_, m_.acc, depth_of(m_, m_.channels).loops, {m_.sums.channel}, m_.sums.row,
                     m_.sums.lane, m_.instruction, row_.outer);
    s_.map_nests(m_.copies);
    s_.unroll(channel_.inner);
    s_.vectorize(y_.lane);
    s_.parallelize(outer, "yp");
  }

  bool one_row() const { return y_.lines.empty() && y_.phases.empty(); }
  bool pools() const { return !m_.out.window.empty(); }
  bool whole() const { return m_.depthwise || tile_ == 1 || pools(); }
  int64_t together() const { return m_.instruction.rows; }  // pixels that an instruction takes

  // Channel vectors of a tile. The packing of the weights fixes them.
  int64_t tile_vectors() const {
    const auto blocks = s_.extent(m_.sums.channel);
    return blocks && *blocks % m_.vectors == 0 ? m_.vectors : 1;
  }

  int64_t usual_pixels(int64_t extent, int64_t step) const {
    const int64_t rows = std::min(most_tile_rows(s_.target(), 1), kDepthwiseTile);
    if (m_.depthwise) return step * tile_of(extent / step, std::max<int64_t>(1, rows / step));
    if (paired_) return step * std::max<int64_t>(1, paired_rows(s_.target(), extent) / step);
    if (together() > 1) return tile_rows(s_.target(), vectors_, extent, {}, together());
    int64_t most = most_sums(s_, m_);
    // One load holds the channels of two pixels.
    if (s_.by_element(m_.instruction) && s_.extent(m_.channel_lanes).value_or(1) > 1)
      most = std::min(most, 2 * kElementRegisters * vectors_ / (2 * vectors_ + 1));
    return row_tile_pixels(s_.target(), extent, vectors_, most, step);
  }

  // Pixels of a tile along a row of `extent`, in multiples of `step`
  int64_t tile_pixels(std::optional<int64_t> extent, int64_t step, const std::string& knob) const {
    constexpr int64_t kMostTile = 64;  // limit of vectors without rules
    if (!extent) return 1;
    std::vector<int64_t> others;
    const int64_t wide = paired_ ? kPairedVectors : m_.depthwise ? 1 : vectors_;
    for (int64_t pixels = std::max<int64_t>(step, 2); s_.open() && pixels <= *extent; ++pixels) {
      const bool fits = s_.rules() ? fits_registers(s_.target(), {pixels, wide})
                                   : pixels * wide <= kMostTile;
      const bool whole = together() == 1 || *s_.extent(m_.sums.row) % pixels == 0;
      if (pixels % step == 0 && pixels % together() == 0 && whole && fits) others.push_back(pixels);
    }
    return s_.choose(knob, usual_pixels(*extent, step), others);
  }

  // Pixels of a tile in a row of free extent. They are the row tile's if lowering has filled the
  // sums up to whole tiles.
  int64_t free_pixels() const {
    const int64_t tile = free_row_pixels(s_.target(), m_.depthwise ? 1 : vectors_, !one_row());
    const LoopRef sums = find_loop(s_.kernel().body, m_.sums.row.name());
    return sums && is_const(simplify(floor_mod(sums->extent, Expr(tile))), 0) ? tile : 1;
  }

  // Whole short rows in one tile
  int64_t plane_lines(int64_t lines) const {
    std::vector<int64_t> others;
    for (int64_t n = 1; s_.open() && n <= lines; ++n)
      if (fits_registers(s_.target(), {n * tile_, vectors_})) others.push_back(n);
    return s_.choose("lines", tile_lines(s_.target(), lines, tile_, vectors_), others);
  }

  // Cuts the output's loops into tiles. Returns the loops around the tiles of a row, for the
  // threads.
  Loops cut_output() {
    Loops rows = y_.phases;
    rows.insert(rows.end(), y_.lines.begin(), y_.lines.end());
    const Loop part = cut_rows(rows);
    channel_.outer = y_.channel;
    if (vectors_ > 1) channel_ = s_.split(y_.channel, vectors_, Tail::guard, "c0", "c1");
    Loops order = {y_.image};
    if (!whole() && !lines_.inner.defined())
      if (const Loop block = split_blocks(one_row() ? row_.outer : rows.back()); block.defined())
        order.push_back(block);
    const bool usual = part.defined() && takes_rows(s_, m_.input, m_.weights);
    const bool rows_outside = !rows.empty() && s_.choose_switch("rows_outside", usual);
    if (!rows_outside) order.push_back(channel_.outer);
    order.insert(order.end(), rows.begin(), rows.end());
    if (rows_outside) order.push_back(channel_.outer);
    const Loops outer = order;
    order.insert(order.end(), {row_.outer, lines_.inner, row_.inner, channel_.inner, y_.lane});
    s_.reorder(order);
    return outer;
  }

  // Cuts rows into tiles. Returns the loop over parts of a single row, for the threads; none: it
  // has no parts.
  Loop cut_rows(Loops& rows) {
    row_.outer = y_.row;
    if (tile_ == 1) return {};
    Loop part;
    // Parts may overlap by any number of pixels, so an instruction for several pixels needs one
    // whole row.
    if (pixels_ && one_row() && (together() == 1 || pixels_ == s_.extent(m_.sums.row))) {
      const int64_t panels = s_.extent(y_.image).value_or(1) * panels_;
      const auto parts = split_for_threads(s_, y_.row, tile_ / pooled_, panels,
                                           in_tiles(s_.target(), m_.instruction));
      part = parts.outer, row_.outer = parts.inner;
      if (part.defined()) rows.push_back(part);
    }
    const bool plane = !whole() && !paired_ && !in_tiles(s_.target(), m_.instruction) &&
                       tile_ == s_.extent(row_.outer) && !y_.lines.empty() &&
                       !s_.decides(rows.back());
    const auto all = plane ? s_.extent(rows.back()) : std::nullopt;
    if (const int64_t lines = all ? plane_lines(*all) : 1; lines > 1) {
      lines_ = s_.split(rows.back(), lines, Tail::guard, "v0", "v1");
      rows.back() = lines_.outer;
    }
    row_ = s_.split(row_.outer, tile_ / pooled_, Tail::guard, "w0", "w1");
    return part;
  }

  // Puts lines in blocks outside the panels where that is worthwhile (lines_in_block). `line` is
  // the loop over lines of the output, or over tiles if there is one row. Returns the loop over
  // blocks; none: there are no blocks.
  Loop split_blocks(Loop& line) {
    const bool plain = one_row() ? !s_.decides(line) : y_.phases.empty() && y_.lines.size() == 1;
    if (!plain) return {};
    const int64_t n = conv::lines_in_block(s_, m_, s_.extent(line), panels_);
    if (n == 0 || n == s_.extent(line)) return {};
    const auto cut = s_.split(line, n, Tail::guard, "b0", "b1");
    line = cut.inner;
    return cut.outer;
  }

  // Computes the windows that y's tile reads: stage conv, line by line in register tiles. Returns
  // the loop over such tiles.
  Loop compute_windows() {
    const Loop at = row_.outer;
    s_.compute_at(m_.out.conv, at);
    const ConvLoops& c = m_.out.conv_loops;
    Loops lines;
    for (const Loop& line : c.lines)
      if (s_.has(line)) lines.push_back(line);
    Loop pixels = c.row;
    const auto wide = s_.extent(pixels);
    if (const int64_t most = tile_pixels(wide, 1, "line_pixels"); wide && most < *wide) {
      const auto cut = s_.split(pixels, most, Tail::shift, "conv_w0", pixels.name() + "t");
      lines.push_back(cut.outer);
      pixels = cut.inner;
    }
    Loops order = lines;
    order.insert(order.end(), {pixels, c.channel, c.lane});
    s_.reorder(order);
    s_.unroll({pixels, c.channel});
    s_.vectorize(c.lane);
    return lines.empty() ? at : lines.back();
  }

  // Schedules the register tile of the sums and returns their reduce loops.
  Depth sum() {
    Depth depth = depth_of(m_, m_.channels);
    at_ = pools() ? compute_windows() : row_.outer;
    if (paired_) return conv::accumulate_pairs(s_, m_, m_.acc, depth, at_);
    s_.compute_at(m_.acc, at_);
    const auto acc = [&](const Loop& loop) { return s_.moved(m_.acc, loop); };
    const Loop line = lines_.inner.defined() ? acc(m_.sums.lines.back()) : Loop();
    SumInstruction instruction = m_.instruction;
    Loops tile = {line, acc(m_.sums.channel)};
    if (together() > 1) instruction.row = acc(m_.sums.row);
    else tile.insert(tile.begin() + 1, acc(m_.sums.row));
    s_.accumulate(m_.acc, depth.loops, tile, acc(m_.sums.lane), instruction);
    s_.set_scope(m_.acc, "register");
    if (!m_.depthwise && !depth.loops.empty())
      depth.loops.back() = s_.unroll_steps(depth.loops.back(), m_.instruction);
    return depth;
  }

  // Prefetches the next block of input channels. It is a whole plane away, where no hardware
  // prefetcher looks. If all operands fit the second-level cache, the prefetches cost more than
  // they save. They come line by line: the 14 of a tile would not find enough free miss buffers at
  // once.
  void prefetch_planes(const Loop& block, const Loop& lane) {
    int64_t bytes = 0;
    for (const Buffer& b : s_.kernel().buffers)  // a free size may be large
      if (b.role != BufferRole::temp) bytes += s_.bytes_of(b).value_or(s_.target().l2_bytes);
    const bool cached = bytes <= s_.target().l2_bytes;
    if (s_.choose_switch("prefetch_x", !cached)) s_.prefetch_over(m_.input, block, lane);
  }

  void prefetch(const Depth& depth) {
    const Loops& loops = depth.loops;
    if (tile_ == 1 || loops.empty() || m_.depthwise) return;
    const bool pointwise = m_.channel_lanes.defined() &&
                           std::ranges::none_of(m_.taps, &Loop::defined);
    // Otherwise skip_padding reorders the loops of the edges.
    if (pointwise || fuses_products(s_.target()))
      prefetch_planes(depth.blocks.defined() ? depth.blocks : loops.front(), loops.back());
    s_.prefetch_operands(pools() ? m_.out.conv : m_.out.y, m_.input, at_);
    s_.prefetch_panels(m_.weights, loops.back(), paired_);
  }

  void finish_edges(const Depth& depth) {
    if (pixels_) skip_padding(s_, m_, tile_ > 1 ? row_.outer : Loop(), depth);
    else if (tile_ > 1) s_.peel_last(row_.outer);
    if (!pixels_ && m_.depthwise) {
      const Loop tap = conv::row_tap(m_);
      s_.unroll({tap, s_.at_edge(tap, ScheduleBuilder::Edge::last)});
    }
    // Unrolls a few planes under a loop of taps, but not at the edges, whose taps are unrolled.
    if (depth.loops.size() > 1 && s_.extent(m_.channels).value_or(kMostPlanes + 1) <= kMostPlanes)
      s_.unroll(m_.channels);
  }

  ScheduleBuilder& s_;
  const ConvStages& m_;
  const ConvLoops& y_;
  bool paired_;
  int64_t vectors_, panels_;
  int64_t pooled_;                 // pixels of the convolution's row for each pixel of y
  std::optional<int64_t> pixels_;  // pixels of the convolution's row; nullopt: free
  int64_t tile_ = 1;
  ScheduleBuilder::Cut lines_, row_, channel_;  // tiles, and the loops inside one
  Loop at_;                                     // loop at which the sums are computed
};

// Plain output: vectors run along the row, and a few channels share the loaded pixels.
void schedule_plain(ScheduleBuilder& s, const ConvStages& m) {
  const ConvLoops& y = m.out.loops;
  int64_t lanes = s.target().lanes(4);
  auto width = s.extent(y.row);
  int64_t vector = width ? std::min(lanes, *width) : lanes;
  const auto row = s.split(y.row, vector, width ? Tail::shift : Tail::guard, "w0", "w1");
  Loops outer = {y.image, y.channel};
  outer.insert(outer.end(), y.phases.begin(), y.phases.end());
  outer.insert(outer.end(), y.lines.begin(), y.lines.end());
  Loops order = outer;
  order.insert(order.end(), {row.outer, row.inner});
  s.reorder(order);
  s.compute_at(m.acc, row.outer);
  s.accumulate(m.acc, depth_of(m, m.channels).loops, {}, s.moved(m.acc, m.sums.row));
  s.set_scope(m.acc, "register");
  s.vectorize(row.inner);
  s.parallelize(outer, "yp");
}

}  // namespace

void schedule_conv(ScheduleBuilder& s, const ConvStages& m) {
  if (!in_tiles(s.target(), m.instruction))
    s.map_nests(m.copies);  // otherwise after the tiles that read them
  if (m.out.loops.lane.defined()) BlockedSchedule(s, m).run();
  else schedule_plain(s, m);
}

}  // namespace tw
