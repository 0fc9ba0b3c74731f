// Sketches for central sums: where the sums are computed, in which parts, and which stages share a
// loop with them
#include <algorithm>
#include <map>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

// Maps loops of the sum to loops of its only reader, if that reads point by point. Empty for any
// other reader.
std::map<std::string, std::string> reader_loops(const Nest& sum, const Nest& reader) {
  std::map<std::string, std::string> loops;
  bool plain = true;
  visit(reader.store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load || load->buffer != sum.store->buffer) return;
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const auto *of_sum = as<expr::Var>(sum.store->indices[d]),
                 *read = as<expr::Var>(load->indices[d]);
      if (!of_sum) continue;
      plain &= read && loops.try_emplace(of_sum->name, read->name).first->second == read->name;
    }
  });
  return plain && !loops.empty() ? loops : std::map<std::string, std::string>{};
}

// Computes the sums of a block of the reader's points at one time. Knobs: "at_SUM": 0 all sums
// before the reader, else the number of the reader's loop; "rows_SUM": iterations of that loop in a
// block. Returns the reader's loops over blocks, which go to threads once the sums are in place;
// empty: all sums come before the reader.
Loops block_of_reader(ScheduleBuilder& s, const Structure& k, const Nest& sum) {
  if (sum.readers.size() != 1) return {};
  const std::string& label = sum.stage.label();
  const Nest& reader = k.nest(sum.readers.front());
  if (!reader.alone || !reader.reduce.empty() || reader.in_scan != sum.in_scan ||
      k.central(reader.stage))
    return {};
  const auto at = static_cast<size_t>(
      choose_counted(s, "at_" + label, 0, static_cast<int64_t>(reader.spatial.size()) - 1));
  if (at == 0) return {};
  const int64_t rows = s.choose("rows_" + label, 1, {2, 4, 8, 16});
  Loops outer(reader.spatial.begin(), reader.spatial.begin() + static_cast<std::ptrdiff_t>(at));
  if (const Loop loop = outer.back(); rows > 1 && s.extent(loop).value_or(rows + 1) > rows)
    outer.back() = s.split(loop, rows, Tail::guard, loop.name() + "_t", loop.name() + "_r").outer;
  Loop lane = reader.spatial.back();
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(reader.store->buffer).dtype));
  if (s.extent(lane).value_or(lanes + 1) > lanes)
    lane = s.split(lane, lanes, Tail::guard, lane.name() + "_o", lane.name() + "_v").inner;
  s.compute_at(sum.stage, outer.back());
  keep_near(s, sum.stage);
  s.vectorize(lane);
  return outer;
}

// Tiles the sum's own nest, which has the loops `own`. `stage` computes each tile in registers,
// over the reduce loops of `part`. `over` is a reduce loop of the nest, or undefined. Returns the
// loops around a tile.
Loops tile_sum(ScheduleBuilder& s, const Structure& k, const Nest& sum, const Loops& own,
               const Nest& part, const Stage& stage, const Loop& over, bool threads) {
  const std::string& label = sum.stage.label();
  Loops between;
  if (over.defined()) between.push_back(over);
  const std::vector<int64_t> tile = choose_tile(s, k, sum);
  const Levels levels = tile_nest(s, label, own, tile, over.defined(), between);
  Loops around = levels.outer;
  around.insert(around.end(), between.begin(), between.end());
  around.insert(around.end(), levels.middle.begin(), levels.middle.end());
  if (around.empty()) {
    s.fail("the tile of stage '" + label + "' covers all of it: no loop is left to sum in");
    return around;
  }
  if (over.defined()) s.decompose(sum.stage, over);
  const Loops shared = sum_in_registers(s, part, stage, around);
  finish_tile(s, levels, label, threads ? shared : Loops{});
  if (over.defined()) s.vectorize(s.init_of(levels.lane));
  return around;
}

void finish_reader(ScheduleBuilder& s, const Nest& sum, const Loops& outer, Stages& taken) {
  if (outer.empty()) return;
  s.parallelize(outer, sum.readers.front().label() + "_p");
  taken.push_back(sum.readers.front());
}

// A reduction in parts, with a sum for each part that the original sum adds up: the loops that
// remain, the parts' stage, and the loop over parts
struct Parts {
  Nest part;
  Stage stage;
  Loop over;
};
// Splits the longest reduce loop.
Parts cut_reduction(ScheduleBuilder& s, const Nest& sum, const std::string& name,
                    const std::string& knob, std::vector<int64_t> counts) {
  Parts result{sum, {}, {}};
  const auto longest = std::ranges::max_element(
      result.part.reduce, {}, [&](const Loop& loop) { return s.extent(loop).value_or(0); });
  const Loop& loop = *longest;
  const std::optional<int64_t> n = s.extent(loop);
  std::erase_if(counts, [&](int64_t parts) { return parts > 2 && n.value_or(0) < 2 * parts; });
  const int64_t parts = s.choose(knob, counts.front(), counts);
  if (!n || *n < 2 * parts) {
    s.fail("loop '" + loop.name() + "' is too short for " + std::to_string(parts) + " parts");
    return result;
  }
  const auto cut = s.split(loop, (*n + parts - 1) / parts, Tail::guard, loop.name() + "_c",
                           loop.name() + "_i");
  result.stage = s.rfactor(sum.stage, cut.outer, name);
  *longest = cut.inner;
  result.over = cut.outer;
  return result;
}

}  // namespace

void sketch_tile(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  Stages taken;
  std::vector<Loops> around;  // loops around the tile, by sum
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const std::string& label = sum.stage.label();
    const Nest* reader = sum.readers.size() == 1 ? &k.nest(sum.readers.front()) : nullptr;
    const std::map<std::string, std::string> of = reader ? reader_loops(sum, *reader)
                                                         : std::map<std::string, std::string>{};
    if (of.empty() || !reader->alone || !reader->reduce.empty() || k.central(reader->stage))
      return s.fail("stage '" + label + "' has no reader that takes it point by point");
    const std::vector<int64_t> tile = choose_tile(s, k, sum);
    std::vector<int64_t> factors;  // factors of the reader's loops
    bool filled = false;           // the sum has whole tiles only, which do not overlap
    for (const Loop& loop : reader->spatial) {
      const auto match = std::ranges::find(of, loop.name(),
                                           &std::pair<const std::string, std::string>::second);
      const auto place = match == of.end()
                             ? sum.spatial.end()
                             : std::ranges::find(sum.spatial, match->first, &Loop::name);
      factors.push_back(
          place == sum.spatial.end() ? 1 : tile[static_cast<size_t>(place - sum.spatial.begin())]);
      filled |= place != sum.spatial.end() && s.extent(*place) != s.extent(loop);
    }
    const Levels levels = tile_nest(s, label, reader->spatial, factors, filled);
    if (levels.around().empty())
      return s.fail("the tile of stage '" + label +
                    "' covers all of it: no loop is left to sum in");
    const Loops shared = sum_in_registers(s, sum, sum.stage, levels.around());
    finish_tile(s, levels, reader->stage.label(), shared);
    taken.push_back(reader->stage);
    around.push_back(levels.around());
  }
  map_others(s, k, taken);
  for (size_t i = 0; i < around.size(); ++i) cut_edges(s, k.nests[k.sums[i]], around[i]);
}

void sketch_cache_write(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  Stages taken;
  std::vector<Loops> around;  // loops around the tile, by sum
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const Stage registers = s.cache_write(sum.stage, sum.stage.label() + "_sum", "stack");
    const Loops outer = block_of_reader(s, k, sum);
    around.push_back(
        tile_sum(s, k, sum, s.cached(sum.stage, sum.spatial), sum, registers, {}, outer.empty()));
    finish_reader(s, sum, outer, taken);
  }
  map_others(s, k, taken);
  for (size_t i = 0; i < around.size(); ++i) cut_edges(s, k.nests[k.sums[i]], around[i]);
}

void sketch_chunks(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  Stages taken;
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const std::string& label = sum.stage.label();
    const Parts chunks = cut_reduction(s, sum, label + "_chunk", "chunks_" + label,
                                       {2, 3, 4, 8, 16});
    const Loops outer = block_of_reader(s, k, sum);
    tile_sum(s, k, sum, s.cached(sum.stage, sum.spatial), chunks.part, chunks.stage,
             s.cached(sum.stage, {chunks.over}).front(), outer.empty());
    finish_reader(s, sum, outer, taken);
  }
  map_others(s, k, taken);
}

void sketch_rfactor(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const std::string &label = sum.stage.label(), name = label + "_part";
    const Parts parts = cut_reduction(s, sum, name, "parts_" + label, {2, 4, 8, 16, 32});
    const Stage registers = s.cache_write(parts.stage, name + "_sum", "stack");
    // Threads take the parts, with or without some of the other loops.
    Levels levels = tile_nest(s, label, s.cached(parts.stage, sum.spatial), choose_tile(s, k, sum),
                              false);
    const Loop over = s.cached(parts.stage, {parts.over}).front();
    Loops order = {over};
    for (const auto* level : {&levels.outer, &levels.middle, &levels.inner})
      order.insert(order.end(), level->begin(), level->end());
    s.reorder(order);
    levels.outer.insert(levels.outer.begin(), over);
    const Loops shared = sum_in_registers(s, parts.part, registers, levels.around());
    finish_tile(s, levels, name, sum.in_scan ? Loops{} : shared);
    Nest rest = sum;
    rest.spatial = s.cached(sum.stage, sum.spatial);
    rest.reduce = s.cached(sum.stage, {parts.over});
    map_simply(s, k, rest);
  }
  map_others(s, k);
}

}  // namespace tw::generated
