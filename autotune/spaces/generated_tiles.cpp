// Register tiles for sums of any kind, and the levels of loops around them
#include <algorithm>
#include <functional>

#include "autotune/spaces/generated.h"
#include "ir/simplify.h"
#include "kernels/common/register_tile.h"

namespace tw::generated {
namespace {

constexpr int64_t kMostUnrolled = 128;  // most vectors of a tile, without rules
constexpr int64_t kMostPart = 16;       // largest factor of a loop without lanes
constexpr size_t kMostTiles = 48;       // most values of a knob, with rules
constexpr int64_t kMostTaps = 16;       // most iterations of a reduce loop that is unrolled whole

// True when vectors of `lanes` iterations load neighbouring elements, or one element for all lanes.
// Then nothing is gathered.
bool loads_vectors(const Structure& k, const Nest& sum, const Loop& of, int64_t lanes) {
  const std::string &name = of.name(), vector = name + ".v", lane = name + ".l";
  Ranges ranges;
  visit(k.kernel.body, [&](const Stmt& s) {
    const auto* loop = as<stmt::Loop>(s);
    if (!loop) return;
    ranges[loop->var] = {Expr(0), loop->extent - Expr(1)};
    if (loop->var == name) ranges[vector] = {Expr(0), ceil_div(loop->extent, lanes) - Expr(1)};
  });
  ranges[lane] = {Expr(0), Expr(lanes - 1)};
  bool good = true;
  visit(sum.store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const Expr at = simplify(
          substitute(load->indices[d], name, var(vector) * Expr(lanes) + var(lane)), ranges);
      if (!uses_var(at, lane)) continue;
      good &= d + 1 == load->indices.size() && !uses_var(simplify(at - var(lane), ranges), lane);
    }
  });
  return good;
}

// True for a loop whose iterations have operands apart from those of the lanes. Iterations of other
// loops share the lanes' vectors.
bool is_row(const Nest& sum, const Loop& loop, const Loop& lane) {
  bool row = true;
  visit(sum.store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    const auto uses = [&](const Loop& used) {
      return std::ranges::any_of(load->indices,
                                 [&](const Expr& index) { return uses_var(index, used.name()); });
    };
    row &= !(uses(loop) && uses(lane));
  });
  return row;
}

// True when elements of some operand for neighbouring iterations lie a multiple of kSetBytes apart,
// which puts them into one set of the first-level cache.
bool shares_sets(const Structure& k, const Nest& sum, const Loop& loop) {
  bool shares = false;
  visit(sum.store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    const Buffer& buffer = k.kernel.buffer(load->buffer);
    int64_t bytes = dtype_bytes(buffer.dtype);
    for (size_t d = load->indices.size(); d-- > 0;) {
      shares |= uses_var(load->indices[d], loop.name()) && bytes % kSetBytes == 0;
      bytes *= as_const(buffer.shape[d]).value_or(1);
    }
  });
  return shares;
}

std::vector<int64_t> lane_parts(const Structure& k, const Nest& sum, const ScheduleBuilder& s) {
  const Loop& loop = sum.spatial.back();
  const int64_t lanes = std::max(
      1, s.target().lanes(dtype_bytes(k.kernel.buffer(sum.store->buffer).dtype)));
  const std::optional<int64_t> n = s.extent(loop);
  if (n && *n <= lanes) return {*n};
  std::vector<int64_t> parts;
  for (const int64_t vectors : {1, 2, 3, 4, 6, 8}) {
    const int64_t part = lanes * vectors;
    const bool cheap = !n || (*n + part - 1) / part * part * 8 <= *n * 9;
    if ((!n || part <= *n) && (!s.rules() || (cheap && loads_vectors(k, sum, loop, part))))
      parts.push_back(part);
  }
  if (!s.rules() && lanes > 1) parts.push_back(lanes / 2);
  if (parts.empty()) parts.push_back(lanes);
  return parts;
}

std::vector<int64_t> other_parts(const Structure& k, const Nest& sum, const Loop& loop,
                                 const ScheduleBuilder& s) {
  const std::optional<int64_t> n = s.extent(loop);
  if (!n) return {1, 2, 4, 6, 8};
  // With an instruction, tiles have whole blocks of its rows.
  const bool rows = s.rules() && !sum.products.empty() && sum.products[0].row == loop;
  const int64_t step = rows ? sum.products[0].rows : 1;
  const auto cheap = [&](int64_t part) {
    return rows ? *n % part == 0 : (*n + part - 1) / part * part * 8 <= *n * 9;
  };
  std::vector<int64_t> parts;
  for (int64_t part = step;
       part <= std::min(*n, s.rules() && shares_sets(k, sum, loop) ? kSetWays : kMostPart);
       part += step)
    if (!s.rules() || cheap(part)) parts.push_back(part);
  return parts;
}

struct Tiles {
  std::vector<std::vector<int64_t>> parts;  // candidates for each loop
  std::vector<bool> row;
  // Tiles, each with a key: too large for the registers, then its cost
  std::vector<std::pair<std::pair<bool, double>, std::vector<int64_t>>> found;

  void enumerate(const ScheduleBuilder& s, int64_t lanes, std::vector<int64_t>& tile, int split) {
    if (tile.size() < parts.size()) {
      for (const int64_t part : parts[tile.size()]) {
        const bool lane = tile.size() + 1 == parts.size();
        // At most three loops give a tile more than one line.
        if (!lane && part > 1 && split == 3) continue;
        tile.push_back(part);
        enumerate(s, lanes, tile, split + (!lane && part > 1));
        tile.pop_back();
      }
      return;
    }
    int64_t rows = 1, vectors = (tile.back() + lanes - 1) / lanes;
    for (size_t i = 0; i + 1 < tile.size(); ++i) (row[i] ? rows : vectors) *= tile[i];
    const bool fits = fits_registers(s.target(), {rows, vectors});
    if (s.rules() ? !fits : rows * vectors > kMostUnrolled) return;
    const double cost = step_cost(s.target(), rows, vectors) / static_cast<double>(rows * vectors);
    found.emplace_back(std::pair{!fits, cost}, tile);
  }
};

}  // namespace

Loops Levels::around() const {
  Loops all = outer;
  all.insert(all.end(), middle.begin(), middle.end());
  return all;
}

std::vector<std::vector<int64_t>> register_tiles(const Structure& k, const Nest& sum,
                                                 const ScheduleBuilder& s) {
  Tiles tiles;
  const Loop& lane = sum.spatial.back();
  for (const Loop& loop : sum.spatial) {
    tiles.parts.push_back(loop == lane ? lane_parts(k, sum, s) : other_parts(k, sum, loop, s));
    tiles.row.push_back(is_row(sum, loop, lane));
  }
  std::vector<int64_t> tile;
  tiles.enumerate(
      s, std::max(1, s.target().lanes(dtype_bytes(k.kernel.buffer(sum.store->buffer).dtype))), tile,
      0);
  // A tile that covers everything leaves no loop to sum in.
  const auto covers = [&](const auto& candidate) {
    bool all = true;
    for (size_t i = 0; i < sum.spatial.size(); ++i)
      all &= s.extent(sum.spatial[i]).value_or(candidate.second[i] + 1) <= candidate.second[i];
    return all;
  };
  if (!std::ranges::all_of(tiles.found, covers)) std::erase_if(tiles.found, covers);
  std::ranges::stable_sort(tiles.found, {}, [](const auto& candidate) { return candidate.first; });
  if (s.rules() && tiles.found.size() > kMostTiles) tiles.found.resize(kMostTiles);
  std::vector<std::vector<int64_t>> found;
  for (auto& [cost, one] : tiles.found) found.push_back(std::move(one));
  if (found.empty()) found.emplace_back(sum.spatial.size(), 1);
  return found;
}

int64_t choose_counted(const ScheduleBuilder& s, const std::string& knob, int64_t usual,
                       int64_t last) {
  return std::min(s.choose(knob, usual, counted(usual + 1, last)), std::max(usual, last));
}

std::vector<int64_t> choose_tile(const ScheduleBuilder& s, const Structure& k, const Nest& sum) {
  std::vector<int64_t> tile = s.choose("tile_" + sum.stage.label(),
                                       [&] { return register_tiles(k, sum, s); });
  const size_t loops = sum.spatial.size();
  if (tile.size() > loops) tile.erase(tile.begin(), tile.end() - static_cast<ptrdiff_t>(loops));
  tile.insert(tile.begin(), loops - tile.size(), 1);
  return tile;
}

namespace {

// The chosen instruction of a sum, with its steps taken out of the reduce loops; empty: none.
SumInstruction choose_instruction(ScheduleBuilder& s, const Nest& sum, const std::string& label,
                                  Loops& reduce) {
  if (sum.products.empty()) return {};
  const std::vector<int64_t> others = s.rules()
                                          ? std::vector<int64_t>{}
                                          : counted(0, static_cast<int64_t>(sum.products.size()));
  const int64_t chosen = s.choose("instruction_" + label, 1, others);
  if (chosen == 0 || chosen > static_cast<int64_t>(sum.products.size())) return {};
  const Product& product = sum.products[static_cast<size_t>(chosen) - 1];
  SumInstruction instruction = product.instruction();
  const auto depth = std::ranges::find(reduce, product.depth);
  if (depth == reduce.end() || reduce.size() + (s.extent(*depth) != product.steps) < 2) {
    s.fail("nothing is left of the reduction of stage '" + label + "' around an instruction");
    return {};
  }
  if (s.extent(*depth) == product.steps) {
    reduce.erase(depth);
    return instruction;
  }
  const auto cut = s.split(*depth, product.steps, Tail::guard, depth->name() + "_q",
                           depth->name() + "_k");
  *depth = cut.outer;
  instruction.depth = cut.inner;
  return instruction;
}

}  // namespace

LoopLevels cut_loop(ScheduleBuilder& s, const Loop& loop, int64_t tile, int64_t block, Tail tail) {
  const std::string& name = loop.name();
  if (tile == 0 || s.extent(loop).value_or(tile + 1) <= tile) return {{}, {}, loop};
  LoopLevels levels{loop, {}, {}};
  if (tile > 1) {
    const auto cut = s.split(loop, tile, tail, name + "_t", name + "_r");
    levels = {cut.outer, {}, cut.inner};
  }
  if (block == 1) return levels;
  if (block == 0 || s.extent(levels.outer).value_or(block + 1) <= block) {
    levels.middle = levels.outer;
    levels.outer = {};
    return levels;
  }
  const auto cut = s.split(levels.outer, block, Tail::guard, name + "_b", name + "_m");
  levels.outer = cut.outer, levels.middle = cut.inner;
  return levels;
}

Levels tile_nest(ScheduleBuilder& s, const std::string& name, const Loops& loops,
                 const std::vector<int64_t>& tile, bool once, const Loops& between) {
  Levels levels;
  std::vector<Loops> outer(loops.size());
  for (size_t i = 0; i < loops.size(); ++i) {
    const Loop& loop = loops[i];
    const std::optional<int64_t> n = s.extent(loop);
    if (!s.has(loop)) continue;
    const int64_t block = n == 1 ? 1 : s.choose("block_" + loop.name(), 1, {2, 4, 8, 16});
    if (n == 1) {
      outer[i].push_back(loop);
      continue;
    }
    const LoopLevels cut = cut_loop(s, loop, tile[i], block,
                                    n && *n % tile[i] != 0 && !once ? Tail::shift : Tail::guard);
    if (cut.inner.defined()) {
      levels.inner.push_back(cut.inner);
      if (i + 1 == loops.size()) levels.lane = cut.inner;
    }
    if (cut.middle.defined()) levels.middle.push_back(cut.middle);
    if (cut.outer.defined()) outer[i].push_back(cut.outer);
  }
  const auto first = static_cast<size_t>(
      choose_counted(s, "outermost_" + name, 0, static_cast<int64_t>(loops.size()) - 1));
  std::rotate(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(first),
              outer.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  for (const Loops& part : outer) levels.outer.insert(levels.outer.end(), part.begin(), part.end());
  Loops order = levels.outer;
  order.insert(order.end(), between.begin(), between.end());
  order.insert(order.end(), levels.middle.begin(), levels.middle.end());
  order.insert(order.end(), levels.inner.begin(), levels.inner.end());
  s.reorder(order);
  return levels;
}

Loops sum_in_registers(ScheduleBuilder& s, const Nest& sum, const Stage& stage,
                       const Loops& around) {
  const std::string& label = stage.label();
  Loops reduce = sum.reduce;
  std::erase_if(reduce, [&](const Loop& loop) { return !s.has(loop); });
  if (reduce.empty()) {
    s.fail("stage '" + label + "' has no sums");
    return around;
  }
  const auto first = static_cast<std::ptrdiff_t>(
      choose_counted(s, "first_" + label, 0, static_cast<int64_t>(sum.reduce.size()) - 1));
  if (first < static_cast<std::ptrdiff_t>(reduce.size()))
    std::rotate(reduce.begin(), reduce.begin() + first, reduce.begin() + first + 1);
  s.compute_at(stage, around.back());
  Loops shared = pack_operands(s, sum, stage, around);
  SumInstruction instruction = choose_instruction(s, sum, label, reduce);
  const auto longest = std::ranges::max_element(
      reduce, {}, [&](const Loop& loop) { return s.extent(loop).value_or(1 << 20); });
  if (const int64_t depth = s.choose("depth_" + label, 0, {4, 16, 64, 256});
      depth > 0 && s.extent(*longest).value_or(depth + 1) > depth) {
    const std::string all = longest->name();
    const auto cut = s.split(*longest, depth, Tail::guard, all + "_o", all + "_i");
    *longest = cut.inner;
    reduce.insert(reduce.begin(), cut.outer);
  }
  const Loop lane = s.moved(stage, sum.spatial.back());
  if (instruction.row.defined()) instruction.row = s.moved(stage, instruction.row);
  Loops tile;
  for (const Loop& loop : s.moved(stage, sum.spatial))
    if (loop != lane && loop != instruction.row && s.has(loop)) tile.push_back(loop);
  s.accumulate(stage, reduce, tile, lane, instruction);
  s.set_scope(stage, "register");
  const int64_t steps = s.choose("steps_" + label, 1, {2, 4, 8});
  const int64_t taps = sum.reduce.size() > 1 ? s.choose("taps_" + label, 0, {1, 2}) : 0;
  for (int64_t i = 0; i < taps && reduce.size() > 1; ++i) {
    if (s.extent(reduce.back()).value_or(kMostTaps + 1) > kMostTaps) break;
    s.unroll(reduce.back());
    reduce.pop_back();
  }
  Loop inner = reduce.back();
  if (steps > 1 && s.extent(inner).value_or(steps + 1) > steps) {
    const auto cut = s.split(inner, steps, Tail::guard, inner.name() + "_s", inner.name() + "_u");
    s.unroll(cut.inner);
    inner = cut.outer;
  }
  const int64_t ahead = s.choose("prefetch_" + label, 0, {4, 16});
  if (ahead == 0) return shared;
  std::vector<BufferName> operands;
  visit(sum.store->value, [&](const Expr& e) {
    if (const auto* load = as<expr::Load>(e)) operands.push_back(s.name_of(load->buffer));
  });
  for (const BufferName& operand : operands) s.prefetch_weights(operand, inner, ahead);
  return shared;
}

void cut_edges(ScheduleBuilder& s, const Nest& sum, const Loops& loops) {
  if (!sum.store->where.defined()) return;
  int64_t count = s.choose("edges_" + sum.stage.label(), 0, {1, 2});
  for (auto loop = loops.rbegin(); loop != loops.rend() && count > 0; ++loop) {
    if (!s.has(*loop) || !s.decides(*loop)) continue;
    s.partition_edges(*loop);
    --count;
  }
}

void finish_tile(ScheduleBuilder& s, const Levels& levels, const std::string& name,
                 const Loops& shared) {
  for (const Loop& loop : levels.inner)
    if (loop == levels.lane) s.vectorize(loop);
    else s.unroll(loop);
  Loops threads = levels.outer;
  std::erase_if(threads,
                [&](const Loop& loop) { return std::ranges::find(shared, loop) == shared.end(); });
  if (!shared.empty()) s.parallelize(threads, name + "_p");
}

}  // namespace tw::generated
