// Sketches about sums: where they are made, in which parts, and which stages share a loop with
// them.
#include <algorithm>
#include <map>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

std::vector<int64_t> choose_tile(const ScheduleBuilder& s, const Structure& k, const Nest& sum) {
  return s.choose("tile_" + sum.label, [&] { return register_tiles(k, sum, s); });
}

// Loops of the sum's only reader that read it point by point: by loop of the sum. Empty: another
// kind of reader.
std::map<std::string, std::string> reader_loops(const Nest& sum, const Nest& reader) {
  std::map<std::string, std::string> loops;
  bool plain = true;
  visit(reader.store->value, [&](const Expr& e) {
    if (e->kind != ExprKind::load || e->buffer != sum.store->buffer) return;
    for (size_t d = 0; d < e->args.size(); ++d) {
      const Expr &of_sum = sum.store->indices[d], &read = e->args[d];
      if (of_sum->kind != ExprKind::var) continue;
      plain &= read->kind == ExprKind::var;
      if (read->kind == ExprKind::var)
        plain &= loops.try_emplace(of_sum->name, read->name).first->second == read->name;
    }
  });
  return plain && !loops.empty() ? loops : std::map<std::string, std::string>{};
}

// A block of the reader's points whose sums are made at one time. Knobs "at_SUM": 0 all before the
// reader, else at its so-many-th loop, and "rows_SUM", in parts of so many iterations. The reader's
// loops outside of them, for the threads once the sums are in place; none: all before.
std::vector<std::string> block_of_reader(ScheduleBuilder& s, const Structure& k, const Nest& sum) {
  if (sum.readers.size() != 1) return {};
  const Nest& reader = k.nest(sum.readers.front());
  if (!reader.alone || !reader.reduce.empty() || reader.in_scan != sum.in_scan ||
      k.central(reader.label))
    return {};
  const auto at = static_cast<size_t>(
      s.choose("at_" + sum.label, 0, counted(1, static_cast<int64_t>(reader.spatial.size()) - 1)));
  if (at == 0) return {};
  const int64_t rows = s.choose("rows_" + sum.label, 1, {2, 4, 8, 16});
  std::vector<std::string> outer(reader.spatial.begin(),
                                 reader.spatial.begin() + static_cast<std::ptrdiff_t>(at));
  if (const std::string loop = outer.back(); rows > 1 && s.extent(loop).value_or(rows + 1) > rows) {
    s.split(loop, rows, Tail::guard, loop + "_t", loop + "_r");
    outer.back() = loop + "_t";
  }
  std::string lane = reader.spatial.back();
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(reader.store->buffer).dtype));
  if (s.extent(lane).value_or(lanes + 1) > lanes) {
    s.split(lane, lanes, Tail::guard, lane + "_o", lane + "_v");
    lane += "_v";
  }
  s.compute_at(sum.label, outer.back());
  keep_near(s, sum.buffer);
  s.vectorize(lane);
  return outer;
}

// The sum's own nest in tiles, each of which stage NAME sums in registers over the reduce loops of
// `part`. `over`: a reduce loop of the nest, "" for none.
void tile_sum(ScheduleBuilder& s, const Structure& k, const Nest& sum, const Nest& part,
              const std::string& name, const std::string& over, bool threads) {
  const std::string& stage = sum.label;
  std::vector<std::string> loops;
  for (const std::string& loop : sum.spatial) loops.push_back(loop_name(stage, loop));
  const std::vector<int64_t> tile = choose_tile(s, k, sum);
  std::vector<std::string> between;
  if (!over.empty()) between.push_back(over);
  const Levels levels = tile_nest(s, sum.label, loops, tile, !over.empty(), between);
  std::vector<std::string> around = levels.outer;
  around.insert(around.end(), between.begin(), between.end());
  around.insert(around.end(), levels.middle.begin(), levels.middle.end());
  if (around.empty())
    return s.fail("the tile of stage '" + stage + "' covers all of it: no loop is left to sum in");
  if (!over.empty()) s.decompose(stage, over);
  sum_in_registers(s, part, name, name, around.back());
  finish_tile(s, levels, loops.back(), stage, threads);
  if (over.empty()) return;
  for (const std::string& loop : levels.inner) {
    const std::string init = loop + "_init";
    if (loop == loops.back() || loop == loops.back() + "_r") s.vectorize(init);
  }
}

void finish_reader(ScheduleBuilder& s, const Nest& sum, const std::vector<std::string>& outer,
                   std::vector<std::string>& taken) {
  if (outer.empty()) return;
  s.parallelize(outer, sum.readers.front() + "_p");
  taken.push_back(sum.readers.front());
}

// Splits the longest reduce loop into parts and gives each sums of its own, stage NAME; the sum
// adds them up. The new outer loop.
std::string cut_reduction(ScheduleBuilder& s, Nest& part, const std::string& name,
                          const std::string& knob, std::vector<int64_t> counts) {
  const auto longest = std::ranges::max_element(
      part.reduce, {}, [&](const std::string& loop) { return s.extent(loop).value_or(0); });
  const std::string loop = *longest;
  const std::optional<int64_t> n = s.extent(loop);
  std::erase_if(counts, [&](int64_t parts) { return parts > 2 && n.value_or(0) < 2 * parts; });
  const int64_t parts = s.choose(knob, counts.front(), counts);
  if (!n || *n < 2 * parts) {
    s.fail("loop '" + loop + "' is too short for " + std::to_string(parts) + " parts");
    return loop;
  }
  s.split(loop, (*n + parts - 1) / parts, Tail::guard, loop + "_c", loop + "_i");
  s.rfactor(part.label, loop + "_c", name);
  *longest = loop + "_i";
  return loop + "_c";
}

}  // namespace

void sketch_tile(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  std::vector<std::string> taken;
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const Nest* reader = sum.readers.size() == 1 ? &k.nest(sum.readers.front()) : nullptr;
    const std::map<std::string, std::string> of = reader ? reader_loops(sum, *reader)
                                                         : std::map<std::string, std::string>{};
    if (of.empty() || !reader->alone || !reader->reduce.empty() || k.central(reader->label))
      return s.fail("stage '" + sum.label + "' has no reader that takes it point by point");
    const std::vector<int64_t> tile = choose_tile(s, k, sum);
    std::vector<int64_t> factors;  // of the reader's loops
    for (const std::string& loop : reader->spatial) {
      const auto match = std::ranges::find(of, loop,
                                           &std::pair<const std::string, std::string>::second);
      const auto place = match == of.end() ? sum.spatial.end()
                                           : std::ranges::find(sum.spatial, match->first);
      factors.push_back(
          place == sum.spatial.end() ? 1 : tile[static_cast<size_t>(place - sum.spatial.begin())]);
    }
    const Levels levels = tile_nest(s, sum.label, reader->spatial, factors, false);
    if (levels.around().empty())
      return s.fail("the tile of stage '" + sum.label +
                    "' covers all of it: no loop is left to sum in");
    sum_in_registers(s, sum, sum.label, sum.buffer, levels.around().back());
    finish_tile(s, levels, reader->spatial.back(), reader->label, true);
    taken.push_back(reader->label);
  }
  map_others(s, k, taken);
}

void sketch_cache_write(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  std::vector<std::string> taken;
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const std::string name = sum.label + "_sum";
    s.cache_write(sum.label, name, "stack");
    const std::vector<std::string> outer = block_of_reader(s, k, sum);
    tile_sum(s, k, sum, sum, name, "", outer.empty());
    finish_reader(s, sum, outer, taken);
  }
  map_others(s, k, taken);
}

void sketch_chunks(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  std::vector<std::string> taken;
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const std::string name = sum.label + "_chunk";
    Nest part = sum;
    const std::string over = cut_reduction(s, part, name, "chunks_" + sum.label, {2, 3, 4, 8, 16});
    const std::vector<std::string> outer = block_of_reader(s, k, sum);
    tile_sum(s, k, sum, part, name, loop_name(sum.label, over), outer.empty());
    finish_reader(s, sum, outer, taken);
  }
  map_others(s, k, taken);
}

void sketch_rfactor(ScheduleBuilder& s, const Structure& k) {
  place_producers(s, k);
  for (const size_t i : k.sums) {
    const Nest& sum = k.nests[i];
    const std::string name = sum.label + "_part", registers = name + "_sum";
    Nest part = sum;
    const std::string over = cut_reduction(s, part, name, "parts_" + sum.label, {2, 4, 8, 16, 32});
    s.cache_write(name, registers, "stack");
    // The parts go to the threads, with or without some of the other loops.
    std::vector<std::string> loops;
    for (const std::string& loop : sum.spatial) loops.push_back(loop_name(name, loop));
    Levels levels = tile_nest(s, sum.label, loops, choose_tile(s, k, sum), false);
    const std::string parts = loop_name(name, over);
    std::vector<std::string> order = {parts};
    for (const auto* level : {&levels.outer, &levels.middle, &levels.inner})
      order.insert(order.end(), level->begin(), level->end());
    s.reorder(order);
    levels.outer.insert(levels.outer.begin(), parts);
    sum_in_registers(s, part, registers, registers, levels.around().back());
    finish_tile(s, levels, loops.back(), name, !sum.in_scan);
    Nest rest = sum;
    for (std::string& loop : rest.spatial) loop = loop_name(sum.label, loop);
    rest.reduce = {loop_name(sum.label, over)};
    map_simply(s, k, rest);
  }
  map_others(s, k);
}

}  // namespace tw::generated
