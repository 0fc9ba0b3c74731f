// Chains of stages (softmax, normalisation, attention, transforms around products): all that the
// last stage needs of a block of its points is made at loops over such blocks.
#include <algorithm>
#include <map>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

// Loops of the stage below `at`.
Loops below(const ScheduleBuilder& s, const Stage& stage, const Loop& at) {
  Loops loops = s.loops_of(stage);
  const auto found = std::ranges::find(loops, at);
  if (found != loops.end()) loops.erase(loops.begin(), found + 1);
  return loops;
}

// Loops over blocks of the last stage's points and over tiles of a block, outermost first; before
// them loops of one iteration.
struct Blocks {
  Loops ones, outer;
};
// What is left of each loop is a tile. Knobs "rows_LOOP": iterations of a loop in a tile, 0 all of
// them; "block_LOOP": tiles in a block, 0 all of them; "outermost_rows".
Blocks cut_blocks(ScheduleBuilder& s, const Nest& last) {
  Loops ones, outer, middle, inner;
  for (const Loop& loop : last.spatial) {
    const std::optional<int64_t> n = s.extent(loop);
    if (n == 1) {
      ones.push_back(loop);
      continue;
    }
    const bool lane = loop == last.spatial.back();
    const int64_t rows = lane ? s.choose("rows_" + loop.name(), 0, {16, 64, 256})
                              : s.choose("rows_" + loop.name(), 1, {2, 3, 4, 6, 8, 16, 0}),
                  block = s.choose("block_" + loop.name(), 1, {2, 4, 8, 0});
    Loop tiles = loop;
    if (rows == 0 || (n && *n <= rows)) {
      inner.push_back(loop);
      continue;
    }
    if (rows > 1) {
      const auto cut = s.split(loop, rows, Tail::guard, loop.name() + "_t", loop.name() + "_r");
      inner.push_back(cut.inner);
      tiles = cut.outer;
    }
    if (block == 1) {
      outer.push_back(tiles);
    } else if (block == 0 || s.extent(tiles).value_or(block + 1) <= block) {
      middle.push_back(tiles);
    } else {
      const auto cut = s.split(tiles, block, Tail::guard, loop.name() + "_b", loop.name() + "_m");
      outer.push_back(cut.outer), middle.push_back(cut.inner);
    }
  }
  const auto first = static_cast<std::ptrdiff_t>(
      s.choose("outermost_rows", 0, counted(1, static_cast<int64_t>(last.spatial.size()) - 1)));
  if (first < static_cast<std::ptrdiff_t>(outer.size()))
    std::rotate(outer.begin(), outer.begin() + first, outer.begin() + first + 1);
  outer.insert(outer.end(), middle.begin(), middle.end());
  Loops order = ones;
  order.insert(order.end(), outer.begin(), outer.end());
  order.insert(order.end(), inner.begin(), inner.end());
  s.reorder(order);
  return {ones, outer};
}

// A stage within a block: in lanes of neighbours, or sums along the reduction where there are none.
void map_inside(ScheduleBuilder& s, const Structure& k, const Nest& nest, const Loop& at) {
  const std::string& label = nest.stage.label();
  const Loops reduce = s.reduce_loops_of(nest.stage);
  Loops spatial;
  for (const Loop& loop : below(s, nest.stage, at))
    if (std::ranges::find(reduce, loop) == reduce.end()) spatial.push_back(loop);
  if (!spatial.empty()) return map_lanes(s, nest, reduce, cut_lanes(s, k, nest, spatial));
  if (nest.sums() && reduce.size() == 1 && s.extent(reduce.front()).value_or(1024) < 1024 &&
      s.choose_switch("fold_" + label, true)) {
    s.decompose(nest.stage, reduce.front());
    s.vectorize(reduce.front());
  }
}

// Central sums within a block, in register tiles.
void tile_inside(ScheduleBuilder& s, const Structure& k, const Nest& sum, const Stage& registers,
                 const Loop& at) {
  const std::string& label = sum.stage.label();
  const std::vector<int64_t> tile = s.choose("tile_" + label,
                                             [&] { return register_tiles(k, sum, s); });
  const Levels levels = tile_nest(s, label, s.moved(sum.stage, sum.spatial), tile, false);
  const Loops around = levels.around();
  sum_in_registers(s, sum, registers, around.empty() ? at : around.back());
  finish_tile(s, levels, label, false);
}

// Where the stages before the last one are made, at so many loops over blocks (none: in nests of
// their own), and how.
class Places {
 public:
  Places(ScheduleBuilder& s, const Structure& k, const Loops& outer)
      : s_(s), k_(k), outer_(outer), shared_(outer.size()) {}

  // The last stage.
  void map_last(const Nest& last) {
    levels_[last.stage.label()] = outer_.size();
    map_inside(s_, k_, last, outer_.back());
  }

  // Its readers have places already. Knob "place_STAGE": 0 a nest of its own, 1 inlined, 2 where
  // its readers are, 3 and more so many loops outside of that.
  void place(const Nest& nest) {
    const std::string& label = nest.stage.label();
    std::vector<int64_t> places = counted(3, 6);
    if (nest.pure()) places.insert(places.end(), {0, 1});
    const int64_t place = s_.choose("place_" + label, 2, places);
    size_t& level = levels_[label] = outer_.size();
    for (const Stage& reader : nest.readers)
      if (const auto found = levels_.find(reader.label()); found != levels_.end())
        level = std::min(level, found->second);
    if (place == 1) return s_.compute_inline(nest.stage);
    if (place == 0) level = 0;
    if (level == 0) return map_simply(s_, k_, nest);
    level -= std::min(static_cast<size_t>(place - 2), level - 1);
    shared_ = std::min(shared_, level);
    const Loop at = outer_[level - 1];
    Stage registers;
    if (k_.central(nest.stage) && s_.choose_switch("registers_" + label, true))
      registers = s_.cache_write(nest.stage, label + "_sum", "stack");
    s_.compute_at(nest.stage, at);
    keep_near(s_, nest.stage);
    if (registers.defined()) tile_inside(s_, k_, nest, registers, at);
    else map_inside(s_, k_, nest, at);
  }

  // Those of the loops over blocks that hold nothing else.
  Loops shared() const {
    return {outer_.begin(), outer_.begin() + static_cast<std::ptrdiff_t>(shared_)};
  }

 private:
  ScheduleBuilder& s_;
  const Structure& k_;
  const Loops& outer_;
  size_t shared_;
  std::map<std::string, size_t> levels_;  // by stage: loops over blocks around it
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
