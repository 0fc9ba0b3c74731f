// Convolutions: a tile of one output row's pixels times V channel vectors in registers over the
// whole reduction. Rule: TW * V + V + 1 registers at most; kernel taps stay rolled, for overlapping
// taps in one block make LLVM spill. Before a pool such tiles fill a buffer of its windows, line by
// line.
#include <algorithm>

#include "ir/kernel/sharing.h"
#include "ir/kernel/work.h"
#include "ir/simplify.h"
#include "kernels/common/register_tile.h"
#include "kernels/common/row_tile.h"
#include "kernels/conv/schedule.h"
#include "kernels/families.h"

namespace tw {
namespace conv {
namespace {

// The loop over the taps along the row: the last of k0, k1, ..
std::string row_tap(const std::vector<std::string>& reduce) {
  std::string last;
  for (const std::string& name : reduce)
    if (name[0] == 'k' && name > last) last = name;
  return last;
}

}  // namespace

std::vector<std::string> reduce_order(const std::vector<std::string>& reduce) {
  bool blocked = std::ranges::find(reduce, "rl") != reduce.end();
  std::vector<std::string> order;
  if (blocked) order.push_back(std::ranges::find(reduce, "rci") != reduce.end() ? "rci" : "rc");
  for (const std::string& name : reduce)
    if (name[0] == 'k') order.push_back(name);
  if (std::ranges::find(reduce, blocked ? "rl" : "rc") != reduce.end())
    order.push_back(blocked ? "rl" : "rc");
  return order;
}

// Tiles at the ends of a row are made apart, so that no tile asks whether a tap is in the padding:
// where a tap is unrolled, the emitter leaves it out. The channels of a block are unrolled where
// two operations a product leave none for a loop; below unrolled taps a loop of channels stays,
// which then is the innermost.
void skip_padding(ScheduleBuilder& s, const std::string& tiles,
                  const std::vector<std::string>& depth, bool depthwise) {
  const std::string tap = row_tap(depth);
  s.partition_edges(tiles);
  for (const std::string part : {"", "_a", "_z"}) {
    const bool taps = depthwise || s.decides(tap + part);
    const bool rolled = !depthwise && depth.size() > 1 && depth.front()[0] == 'r' &&
                        s.has_loop(depth.front() + part);
    if (taps && rolled && !fuses_products(s.target())) {
      std::vector<std::string> order;
      for (const std::string& loop : depth) order.push_back(loop + part);
      std::ranges::rotate(order, order.begin() + 1);
      s.reorder(order);
    }
    if (taps) s.unroll(tap + part);
    if (fuses_products(s.target()) || (taps && !rolled)) continue;
    for (const char* channels : {"rct", "rcit", "rl2", "rl2t", "rl"}) s.unroll(channels + part);
  }
}

}  // namespace conv

namespace {

using conv::OutputLoops, conv::reduce_order, conv::skip_padding;

constexpr int64_t kMostPlanes = 4;  // channels of a first layer: too few for a loop
// pixels: their sums, and inputs that neighbouring taps share, stay in registers
constexpr int64_t kDepthwiseTile = 8;

bool starts_with(const std::string& name, const char* prefix) { return name.rfind(prefix, 0) == 0; }

OutputLoops output_loops(const ScheduleBuilder& s) {
  OutputLoops o;
  int64_t phases = 0;
  for (const std::string& name : s.loops_of("y")) {
    if (name == "l") o.lane = name;
    else if (name != "c" && name != "n") {
      // a phase of sub-pixels has weights of its own: outside of the rows
      if (!o.row.empty() && starts_with(name, "r")) {
        o.outer.insert(o.outer.begin() + phases++, name);
        continue;
      }
      if (!o.row.empty()) o.outer.push_back(o.row);
      o.row = name;
    }
  }
  return o;
}

void schedule_pad(ScheduleBuilder& s) {
  if (s.has_stage("pad")) s.map_nest("pad");
}

// Register tile of acc below loop `at`: order is reduce loops, lines, row, channel vectors, lane.
void accumulate(ScheduleBuilder& s, const std::string& line, const std::string& row,
                const std::string& channel, const std::string& lane) {
  s.accumulate("acc", reduce_order(s.reduce_loops_of("acc")), {line, row, channel}, lane);
  s.set_scope("acc", "register");
}

// No reduction over channels: a tap is one multiplication a pixel.
bool is_depthwise(const ScheduleBuilder& s) {
  std::vector<std::string> reduce = s.reduce_loops_of("acc");
  return std::ranges::none_of(reduce, [](const std::string& name) { return name[0] == 'r'; });
}

// A 1x1 convolution has one row of all its pixels. Few channel panels alone cannot keep all threads
// equally busy: then the row is split in parts of whole tiles, "wp" of them, that overlap a little
// where their number does not divide. Overlap is paid for on one thread too, so it counts three
// times what threads lose by waiting.
bool split_for_threads(ScheduleBuilder& s, const std::string& row, int64_t tile, int64_t panels) {
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
  std::erase_if(others, [&](int64_t parts) { return !spreads(parts); });
  if (const int64_t parts = s.choose("parts", usual, others); parts != usual && spreads(parts))
    chunk = chunk_of(parts);
  if (chunk >= extent) return false;
  s.split(row, chunk, extent % tile == 0 ? Tail::guard : Tail::shift, "wp", "wr");
  return true;
}

// Followers that evaluate functions want registers beside the sums: with fewer sums none goes to
// the stack and back before them.
int64_t most_sums(const ScheduleBuilder& s) {
  constexpr int64_t kFollowers = 8, kSimple = 8, kManyRegisters = 32;
  const int64_t registers = s.target().vector_registers;
  bool functions = false;
  for (const Stmt& store : stores_of(s.kernel().body))
    if (store->label == "y" || store->label == "conv")
      visit(store->value, [&](const Expr& e) {
        functions |= e->kind == ExprKind::unary && flops_of(e->unary) > kSimple;
      });
  return functions && registers >= kManyRegisters ? registers - kFollowers : registers;
}

int64_t usual_pixels(const ScheduleBuilder& s, int64_t extent, int64_t vectors, bool paired,
                     int64_t step) {
  if (is_depthwise(s))
    return step * tile_of(extent / step,
                          std::max<int64_t>(
                              1, std::min(most_tile_rows(s.target(), 1), kDepthwiseTile) / step));
  if (paired) return step * std::max<int64_t>(1, paired_rows(s.target(), extent) / step);
  return row_tile_pixels(s.target(), extent, vectors, most_sums(s), step);
}

// Pixels of a tile along a row of so many, in multiples of `step`.
int64_t tile_pixels(const ScheduleBuilder& s, std::optional<int64_t> extent, int64_t vectors,
                    bool paired, int64_t step, const std::string& knob) {
  constexpr int64_t kMostTile = 64;  // of vectors, without rules
  if (!extent) return 1;
  std::vector<int64_t> others;
  const int64_t wide = paired ? kPairedVectors : is_depthwise(s) ? 1 : vectors;
  for (int64_t pixels = std::max<int64_t>(step, 2); s.open() && pixels <= *extent; ++pixels)
    if (pixels % step == 0 &&
        (s.rules() ? fits_registers(s.target(), {pixels, wide}) : pixels * wide <= kMostTile))
      others.push_back(pixels);
  return s.choose(knob, usual_pixels(s, *extent, vectors, paired, step), others);
}

// Of a free row, which has whole tiles of sums where lowering has filled it up.
int64_t free_pixels(const ScheduleBuilder& s, const OutputLoops& o, int64_t vectors) {
  const int64_t tile = free_row_pixels(s.target(), is_depthwise(s) ? 1 : vectors, !o.outer.empty());
  const Stmt sums = find_loop(s.kernel().body, "a" + o.row);
  return sums && is_const(simplify(floor_mod(sums->extent, Expr(tile))), 0) ? tile : 1;
}

// Whole short rows in one tile.
int64_t plane_lines(const ScheduleBuilder& s, int64_t lines, int64_t pixels, int64_t vectors) {
  std::vector<int64_t> others;
  for (int64_t n = 1; s.open() && n <= lines; ++n)
    if (fits_registers(s.target(), {n * pixels, vectors})) others.push_back(n);
  return s.choose("lines", tile_lines(s.target(), lines, pixels, vectors), others);
}

// What the windows of y's tile below loop `at` read: stage conv, line by line in tiles of
// registers. The loop of such a tile.
std::string compute_windows(ScheduleBuilder& s, const std::string& at, const std::string& row,
                            int64_t vectors, bool paired) {
  s.compute_at("conv", at);
  const std::string pixels = "conv_" + row;
  std::vector<std::string> lines = s.spatial_loops_of("conv"), tile = {pixels, "conv_c", "conv_l"};
  std::erase_if(lines, [](const std::string& loop) { return !starts_with(loop, "conv_s"); });
  std::erase(lines, pixels);
  const auto wide = s.extent(pixels);
  if (const int64_t most = tile_pixels(s, wide, vectors, paired, 1, "line_pixels");
      wide && most < *wide) {
    s.split(pixels, most, Tail::shift, "conv_w0", pixels + "t");
    lines.push_back("conv_w0");
    tile.front() = pixels + "t";
  }
  std::vector<std::string> order = lines;
  order.insert(order.end(), tile.begin(), tile.end());
  s.reorder(order);
  s.unroll(tile[0]);
  s.unroll(tile[1]);
  s.vectorize(tile[2]);
  return lines.empty() ? at : lines.back();
}

// The next block of input channels is a whole plane further, where no hardware goes by itself. With
// all of the operands in the second-level cache asking costs more than waiting. Line by line: a
// tile's 14 at once find no free miss buffers.
void prefetch_planes(ScheduleBuilder& s, const std::string& block, const std::string& lane) {
  int64_t bytes = 0;
  for (const Buffer& b : s.kernel().buffers)
    // Of free size: perhaps large
    if (b.role != BufferRole::temp) bytes += s.bytes_of(b.name).value_or(s.target().l2_bytes);
  const bool cached = bytes <= s.target().l2_bytes;
  if (s.choose_switch("prefetch_x", !cached)) s.prefetch_over("x", block, lane);
}

// Channel vectors of a tile, which the packing of the weights decides.
int64_t tile_vectors(const ScheduleBuilder& s, int64_t block, bool paired) {
  int64_t vectors = 1;
  if (auto w = s.kernel().find_buffer("w"); w && !paired) {
    const Shape& panel = s.kernel().buffer(*w).shape;
    // Input channels, innermost
    const bool together = panel.size() > 1 && as_const(panel.back()).value_or(block) < block;
    vectors = as_const(panel[panel.size() - (together ? 2 : 1)]).value_or(block) / block;
  }
  const auto blocks = s.extent("c");
  return blocks && *blocks % vectors == 0 ? vectors : 1;
}

// Lines in blocks "b0" outside of the panels, where that pays: lines_in_block. `line`: of the
// output, or its tiles where it is one row.
bool split_blocks(ScheduleBuilder& s, const OutputLoops& o, int64_t panels, std::string& line) {
  if (o.outer.empty() ? s.decides(line) : o.outer.size() > 1 || starts_with(line, "r"))
    return false;
  const int64_t n = conv::lines_in_block(s, s.extent(line), panels);
  if (n == 0 || n == s.extent(line)) return false;
  s.split(line, n, Tail::guard, "b0", "b1");
  line = "b1";
  return true;
}

void schedule_blocked(ScheduleBuilder& s, const OutputLoops& o) {
  const std::string paired = paired_loop(s);
  const int64_t vectors = tile_vectors(s, *s.extent(o.lane), !paired.empty());
  const bool depthwise = is_depthwise(s);
  const std::vector<int64_t> window = pool_window(s);
  const int64_t pooled = window.empty() ? 1 : window.back();  // pixels for one of y
  const auto pixels = s.extent(o.row) ? std::optional(*s.extent(o.row) * pooled) : std::nullopt;
  const int64_t tile = pixels ? tile_pixels(s, pixels, vectors, !paired.empty(), pooled, "pixels")
                              : free_pixels(s, o, vectors);
  const int64_t panels = s.extent("c").value_or(1) / vectors;
  const conv::Tile shape{tile, vectors, panels, paired};
  const bool whole = depthwise || tile == 1 || !window.empty();
  if (const int64_t chunk = whole ? 0 : conv::chunk_blocks(s, o, shape); chunk > 0)
    return conv::schedule_chunks(s, o, shape, chunk);
  std::string row = o.row, channel = "c";
  std::vector<std::string> inner, rows = o.outer;
  std::string line;
  if (tile > 1) {
    if (pixels && o.outer.empty() &&
        split_for_threads(s, row, tile / pooled,
                          s.extent("n").value_or(1) * s.extent("c").value_or(1) / vectors)) {
      rows.push_back("wp");
      row = "wr";
    }
    const bool plane = window.empty() && !depthwise && paired.empty() && tile == s.extent(row) &&
                       !rows.empty() && !starts_with(rows.back(), "r") && rows.back() != "wp" &&
                       !s.decides(rows.back());
    const int64_t lines = plane && s.extent(rows.back())
                              ? plane_lines(s, *s.extent(rows.back()), tile, vectors)
                              : 1;
    if (lines > 1) {
      line = "acc_a" + rows.back();
      s.split(rows.back(), lines, Tail::guard, "v0", "v1");
      rows.back() = "v0";
      inner.push_back("v1");
    }
    s.split(row, tile / pooled, Tail::guard, "w0", "w1");
    row = "w0";
    inner.push_back("w1");
  }
  if (vectors > 1) {
    s.split("c", vectors, Tail::guard, "c0", "c1");
    channel = "c0";
    inner.push_back("c1");
  }
  std::vector<std::string> order = {"n"};
  if (!whole && line.empty() && split_blocks(s, o, panels, o.outer.empty() ? row : rows.back()))
    order.push_back("b0");
  const bool rows_outside =
      !rows.empty() && s.choose_switch("rows_outside", rows.back() == "wp" && takes_rows(s, "x"));
  if (!rows_outside) order.push_back(channel);
  order.insert(order.end(), rows.begin(), rows.end());
  if (rows_outside) order.push_back(channel);
  order.push_back(row);
  std::vector<std::string> outer(order.begin(), order.end() - 1);
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(o.lane);
  s.reorder(order);
  std::vector<std::string> depth = reduce_order(s.reduce_loops_of("acc"));
  const bool pointwise = depth == std::vector<std::string>{"rc", "rl"};
  const std::string at = window.empty() ? row
                                        : compute_windows(s, row, o.row, vectors, !paired.empty());
  if (paired.empty()) {
    s.compute_at("acc", at);
    accumulate(s, line, "acc_a" + o.row, "acc_ac", "acc_al");
  } else {
    depth = accumulate_pairs(s, "acc", at, paired, depth, {"a" + o.row}, "al");
  }
  if (paired.empty() && !depthwise && !depth.empty()) s.unroll_part(depth.back());
  if (tile > 1 && !depth.empty()) {
    if (!depthwise) {
      // Else the edges' loops change places
      if (pointwise || fuses_products(s.target())) prefetch_planes(s, depth.front(), depth.back());
      s.prefetch_operands(window.empty() ? "y" : "conv", at);
      s.prefetch_panels("w", depth.back(), !paired.empty());
    }
  }
  for (const char* loop : {"v1", "w1", "c1"}) s.unroll(loop);
  s.vectorize(o.lane);
  s.parallelize(outer, "yp");
  if (pixels) skip_padding(s, "w0", depth, depthwise);
  else if (tile > 1) s.peel_last("w0");
  if (!pixels && depthwise)
    for (const char* part : {"", "_z"}) s.unroll(conv::row_tap(depth) + part);
  // Few planes under a loop of taps; not at the edges, whose taps are unrolled.
  if (depth.size() > 1 && s.extent("rc").value_or(kMostPlanes + 1) <= kMostPlanes) s.unroll("rc");
}

// Plain output: vectors run along the row, a few channels share the loaded pixels.
void schedule_plain(ScheduleBuilder& s, const OutputLoops& o) {
  int64_t lanes = s.target().lanes(4);
  auto width = s.extent(o.row);
  int64_t vector = width ? std::min(lanes, *width) : lanes;
  s.split(o.row, vector, width ? Tail::shift : Tail::guard, "w0", "w1");
  std::vector<std::string> order = {"n", "c"};
  order.insert(order.end(), o.outer.begin(), o.outer.end());
  order.push_back("w0");
  std::vector<std::string> outer(order.begin(), order.end() - 1);
  order.push_back("w1");
  s.reorder(order);
  s.compute_at("acc", "w0");
  accumulate(s, "", "", "", "acc_a" + o.row);
  s.vectorize("w1");
  s.parallelize(outer, "yp");
}

}  // namespace

void schedule_conv(ScheduleBuilder& s) {
  schedule_pad(s);
  for (const char* packing : {"w", "bias"})
    if (s.has_stage(packing)) s.map_nest(packing);
  OutputLoops o = output_loops(s);
  if (o.row.empty()) return;
  if (o.lane.empty()) schedule_plain(s, o);
  else schedule_blocked(s, o);
}

}  // namespace tw
