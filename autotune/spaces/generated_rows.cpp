// Sketches for chains of stages (softmax, normalisation, attention, transforms around products).
// For each block of the last stage's points, all stages that it needs are computed at loops over
// such blocks.
#include <algorithm>
#include <map>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

// Loops over blocks of the last stage's points and over the tiles of a block, outermost first.
// `ones` are loops of one iteration, which stand before them.
struct Blocks {
  Loops ones, outer;
};

// Runs of two or more neighbouring loops without the lanes' loop, as first and count. The first
// entry is no run.
std::vector<std::vector<int64_t>> runs_of(size_t loops) {
  std::vector<std::vector<int64_t>> runs = {{0, 0}};
  for (size_t first = 0; first + 2 < loops; ++first)
    for (size_t count = 2; first + count < loops; ++count)
      runs.push_back({static_cast<int64_t>(first), static_cast<int64_t>(count)});
  return runs;
}

// Fuses the tile loops of neighbouring loops, and cuts the result into blocks of `block` tiles (0:
// one block has all).
LoopLevels fuse_tiles(ScheduleBuilder& s, const std::string& name, const Loops& tiles,
                      int64_t block) {
  const Loop all = s.fuse(tiles, name + "_f");
  if (block <= 1) return block == 1 ? LoopLevels{all, {}, {}} : LoopLevels{{}, all, {}};
  const LoopLevels cut = cut_loop(s, all, block, 1, Tail::shift);
  return {cut.outer, cut.inner, {}};
}

// Cuts each loop; the innermost part is a tile. Knobs: "rows_LOOP": iterations in a tile, 0 all;
// "block_LOOP": tiles in a block, 0 all; "fused_rows": the loops whose tile loops are fused;
// "fused_block": the tiles in a block of these; "outermost_rows".
Blocks cut_blocks(ScheduleBuilder& s, const Nest& last) {
  Blocks blocks;
  Loops loops, outer, middle, inner;
  for (const Loop& loop : last.spatial) (s.extent(loop) == 1 ? blocks.ones : loops).push_back(loop);
  const std::vector<int64_t> run = s.choose("fused_rows", [&] { return runs_of(loops.size()); });
  const auto first_fused = static_cast<size_t>(run[0]), fused = static_cast<size_t>(run[1]);
  const int64_t block_of_fused = s.choose(
      "fused_block", 1, {2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 0});
  std::vector<LoopLevels> levels;
  for (size_t i = 0; i < loops.size(); ++i) {
    const Loop& loop = loops[i];
    const int64_t rows = i + 1 == loops.size()
                             ? s.choose("rows_" + loop.name(), 0, {16, 64, 256})
                             : s.choose("rows_" + loop.name(), 1, {2, 3, 4, 6, 8, 16, 0}),
                  block = s.choose("block_" + loop.name(), 1, {2, 4, 8, 0});
    const bool joins = i >= first_fused && i < first_fused + fused;
    levels.push_back(cut_loop(s, loop, rows, joins ? 1 : block, Tail::guard));
  }
  Loops order = blocks.ones, tiles;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (i >= first_fused && i < first_fused + fused && levels[i].outer.defined())
      tiles.push_back(levels[i].outer);
    if (levels[i].inner.defined()) inner.push_back(levels[i].inner);
  }
  if (tiles.size() > 1) {
    order.insert(order.end(), tiles.begin(), tiles.end());
    for (LoopLevels& level : levels) {
      if (std::ranges::find(tiles, level.outer) != tiles.end()) level = {};
      for (const Loop& loop : {level.outer, level.middle})
        if (loop.defined()) order.push_back(loop);
    }
    order.insert(order.end(), inner.begin(), inner.end());
    s.reorder(order);
    levels[first_fused] = fuse_tiles(s, last.stage.label(), tiles, block_of_fused);
    order = blocks.ones;
  }
  for (const LoopLevels& level : levels) {
    if (level.outer.defined()) outer.push_back(level.outer);
    if (level.middle.defined()) middle.push_back(level.middle);
  }
  const auto first = static_cast<std::ptrdiff_t>(
      s.choose("outermost_rows", 0, counted(1, static_cast<int64_t>(last.spatial.size()) - 1)));
  if (first < static_cast<std::ptrdiff_t>(outer.size()))
    std::rotate(outer.begin(), outer.begin() + first, outer.begin() + first + 1);
  blocks.outer = outer;
  blocks.outer.insert(blocks.outer.end(), middle.begin(), middle.end());
  order.insert(order.end(), blocks.outer.begin(), blocks.outer.end());
  order.insert(order.end(), inner.begin(), inner.end());
  s.reorder(order);
  return blocks;
}

// Maps a stage within a block: by lanes, or by sums along the reduction where it has no spatial
// loops. Returns its outer loops, at which other stages may be computed. Knob "order_STAGE": the
// number of outer loops that move behind the others.
Loops map_inside(ScheduleBuilder& s, const Structure& k, const Nest& nest, const Loop& at) {
  const std::string& label = nest.stage.label();
  const Loops reduce = s.reduce_loops_of(nest.stage);
  Loops spatial;
  for (const Loop& loop : loops_below(s, nest.stage, at))
    if (std::ranges::find(reduce, loop) == reduce.end()) spatial.push_back(loop);
  const auto later = static_cast<size_t>(
      s.choose("order_" + label, 0, counted(1, static_cast<int64_t>(nest.spatial.size()) - 2)));
  if (!spatial.empty()) {
    Lanes cut = cut_lanes(s, k, nest, spatial);
    if (later > 0 && later < cut.outer.size()) {
      std::ranges::rotate(cut.outer, cut.outer.begin() + static_cast<std::ptrdiff_t>(later));
      Loops order = cut.outer;
      order.insert(order.end(), cut.beside.begin(), cut.beside.end());
      order.push_back(cut.lane);
      if (reduce.empty()) s.reorder(order);
    }
    map_lanes(s, nest, reduce, cut);
    return reduce.empty() ? cut.outer : Loops{};
  }
  if (nest.sums() && reduce.size() == 1 && s.extent(reduce.front()).value_or(1024) < 1024 &&
      s.choose_switch("fold_" + label, true)) {
    s.decompose(nest.stage, reduce.front());
    s.vectorize(reduce.front());
  }
  return {};
}

// Maps a central sum within a block, in register tiles.
void tile_inside(ScheduleBuilder& s, const Structure& k, const Nest& sum, const Stage& registers,
                 const Loop& at) {
  const std::string& label = sum.stage.label();
  const Levels levels = tile_nest(s, label, s.cached(sum.stage, sum.spatial),
                                  choose_tile(s, k, sum), false);
  Loops around = levels.around();
  around.insert(around.begin(), at);
  sum_in_registers(s, sum, registers, around);
  finish_tile(s, levels, label, {});
}

// Decides where the stages before the last one are computed, and how: at loops over blocks, at
// loops of a reader, or in nests of their own.
class Places {
 public:
  Places(ScheduleBuilder& s, const Structure& k, const Loops& outer)
      : s_(s), k_(k), outer_(outer), shared_(outer.size()) {}

  void map_last(const Nest& last) {
    places_[last.stage.label()] = {outer_, map_inside(s_, k_, last, outer_.back())};
  }

  // Places a stage whose readers have places already. Knob "place_STAGE": 0 a nest of its own; 1
  // inlined; 2 at its readers' place; 3 to 6 that many loops less two further out; 7 and more at a
  // loop of its only reader.
  void place(const Nest& nest) {
    const std::string& label = nest.stage.label();
    std::vector<int64_t> places = counted(3, kInReader + 2);
    if (nest.pure()) places.insert(places.end(), {0, 1});
    const int64_t place = s_.choose("place_" + label, 2, places);
    if (place == 1) {
      places_[label] = where_read(nest);
      return s_.compute_inline(nest.stage);
    }
    Loops around = place == 0 ? Loops{} : where_read(nest).around;
    if (around.empty()) {
      places_[label] = {};
      return map_simply(s_, k_, nest);
    }
    if (place >= kInReader) {
      const Loops inside = where_read(nest).own;
      const auto count = static_cast<size_t>(place - kInReader) + 1;
      around.insert(around.end(), inside.begin(),
                    inside.begin() + static_cast<std::ptrdiff_t>(std::min(count, inside.size())));
    } else {
      around.resize(around.size() - std::min(static_cast<size_t>(place - 2), around.size() - 1));
    }
    shared_ = std::min(shared_, around.size());
    const Loop at = around.back();
    Stage registers;
    if (k_.central(nest.stage) && s_.choose_switch("registers_" + label, true))
      registers = s_.cache_write(nest.stage, label + "_sum", "stack");
    s_.compute_at(nest.stage, at);
    keep_near(s_, nest.stage);
    Loops own;
    if (registers.defined()) tile_inside(s_, k_, nest, registers, at);
    else own = map_inside(s_, k_, nest, at);
    places_[label] = {around, own};
  }

  // The loops over blocks that contain nothing else
  Loops shared() const {
    return {outer_.begin(), outer_.begin() + static_cast<std::ptrdiff_t>(shared_)};
  }

 private:
  static constexpr int64_t kInReader = 7;
  struct Place {
    Loops around, own;  // loops at which the stage is computed; its loops below them
  };

  // The loops that are around all readers, and the own loops of the only reader
  Place where_read(const Nest& nest) const {
    Place place;
    bool first = true;
    for (const Stage& reader : nest.readers) {
      const auto found = places_.find(reader.label());
      if (found == places_.end()) continue;
      const Place& other = found->second;
      if (first) {
        place = other;
        first = false;
        continue;
      }
      const auto differ = std::ranges::mismatch(place.around, other.around);
      place.around.erase(differ.in1, place.around.end());
      place.own.clear();
    }
    return first ? Place{outer_, {}} : place;
  }

  ScheduleBuilder& s_;
  const Structure& k_;
  const Loops& outer_;
  size_t shared_;
  std::map<std::string, Place> places_;
};

}  // namespace

void sketch_rows(ScheduleBuilder& s, const Structure& k) {
  const Nest& last = k.nests.back();
  if (!last.reduce.empty() || !last.alone || last.in_scan || last.spatial.size() < 2)
    return s.fail("stage '" + last.stage.label() + "' has no rows");
  const Blocks blocks = cut_blocks(s, last);
  if (blocks.outer.empty())
    return s.fail("one block has all of stage '" + last.stage.label() + "'");
  Places places(s, k, blocks.outer);
  places.map_last(last);
  for (auto nest = k.nests.rbegin() + 1; nest != k.nests.rend(); ++nest) {
    if (nest->in_scan || !nest->temp)
      return s.fail("stage '" + nest->stage.label() + "' cannot move to blocks of the last one");
    places.place(*nest);
  }
  Loops shared = blocks.ones;
  const Loops rest = places.shared();
  shared.insert(shared.end(), rest.begin(), rest.end());
  s.parallelize(shared, last.stage.label() + "_p");
}

}  // namespace tw::generated
