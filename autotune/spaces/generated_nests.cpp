// The structure of a kernel, and the simple mapping of stages other than central sums
#include <algorithm>

#include "autotune/spaces/generated.h"
#include "ir/kernel/stack_limits.h"

namespace tw::generated {
namespace {

constexpr double kGoodPart = 1.0 / 8;  // share of the largest stage's work that makes a sum central

double count(const Expr& extent) {
  constexpr int64_t kTypicalSymbol = 8;
  return static_cast<double>(eval_int(extent, [](std::string_view) { return kTypicalSymbol; }));
}

Nest nest_of(const ScheduleBuilder& as_lowered, const Stage& stage) {
  const Kernel& kernel = as_lowered.kernel();
  const StoreRef store = as_lowered.store_of(stage);
  Nest nest;
  nest.stage = stage;
  nest.temp = kernel.buffer(store->buffer).role == BufferRole::temp;
  nest.store = store;
  LoopRef own;  // the outermost loop of the nest
  for (const Stmt& s : path_to(kernel.body, store->label)) {
    const auto* loop = as<stmt::Loop>(s);
    if (!loop) continue;
    if (loop->role == AxisRole::scan) {
      nest.in_scan = true;
      continue;
    }
    if (!own) own = LoopRef(s);
    (loop->role == AxisRole::reduce ? nest.reduce : nest.spatial)
        .push_back(as_lowered.loop_of(loop->var));
    nest.points *= count(loop->extent);
  }
  nest.alone = own && stores_of(own).size() == 1;
  for (const Stage& other : as_lowered.stages()) {
    bool reads = false;
    visit_exprs(*as_lowered.store_of(other).stmt(), [&](const Expr& e) {
      visit(e, [&](const Expr& n) {
        const auto* load = as<expr::Load>(n);
        reads |= load && load->buffer == store->buffer;
      });
    });
    if (reads && other != stage) nest.readers.push_back(other);
  }
  return nest;
}

}  // namespace

const Nest& Structure::nest(const Stage& stage) const {
  const auto found = std::ranges::find(nests, stage, &Nest::stage);
  TW_CHECK(found != nests.end(), "no stage '{0}'", stage.label());
  return *found;
}

bool Structure::central(const Stage& stage) const {
  return std::ranges::any_of(sums, [&](size_t i) { return nests[i].stage == stage; });
}

Structure structure_of(const Kernel& kernel, const Target& target) {
  const ScheduleBuilder as_lowered(kernel, target);
  Structure k{kernel, {}, {}};
  double most = 0;
  for (const Stage& stage : as_lowered.stages()) {
    k.nests.push_back(nest_of(as_lowered, stage));
    most = std::max(most, k.nests.back().points);
  }
  for (size_t i = 0; i < k.nests.size(); ++i) {
    Nest& nest = k.nests[i];
    if (!nest.sums() || !nest.alone || !nest.temp || nest.spatial.empty() ||
        nest.points < kGoodPart * most)
      continue;
    nest.products = products_of(kernel, target, nest);
    nest.operands = operands_of(kernel, target, nest);
    k.sums.push_back(i);
  }
  return k;
}

void keep_near(ScheduleBuilder& s, const Stage& stage) {
  if (s.bytes_of(stage.buffer()).value_or(kMaxStackBufferBytes + 1) > kMaxStackBufferBytes)
    s.set_scope(stage, "thread");
}

Lanes cut_lanes(ScheduleBuilder& s, const Structure& k, const Nest& nest, Loops spatial) {
  constexpr int64_t kMostUnrolled = 16;  // most iterations of the loop beside the lanes
  const std::string& label = nest.stage.label();
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(nest.store->buffer).dtype)) *
                        s.choose("vectors_" + label, 1, {2, 4});
  const auto inner = static_cast<size_t>(
      s.choose("inner_" + label, 0, counted(1, static_cast<int64_t>(nest.spatial.size()) - 1)));
  Lanes cut{std::move(spatial), {}, {}};
  cut.lane = cut.outer.back();
  cut.outer.pop_back();
  if (inner > 0 && inner <= cut.outer.size()) {
    const auto beside = cut.outer.end() - static_cast<std::ptrdiff_t>(inner);
    if (s.extent(*beside).value_or(kMostUnrolled + 1) <= kMostUnrolled) {
      cut.beside.push_back(*beside);
      cut.outer.erase(beside);
    }
  }
  if (s.extent(cut.lane).value_or(lanes + 1) > lanes) {
    const std::string name = cut.lane.name();
    const auto parts = s.split(cut.lane, lanes, Tail::guard, name + "_o", name + "_v");
    cut.outer.push_back(parts.outer);
    cut.lane = parts.inner;
  }
  return cut;
}

void map_lanes(ScheduleBuilder& s, const Nest& nest, const Loops& reduce, const Lanes& cut) {
  if (!cut.beside.empty()) {
    Loops order = cut.outer;
    order.insert(order.end(), reduce.begin(), reduce.end());
    order.insert(order.end(), {cut.beside[0], cut.lane});
    s.reorder(order);
  }
  if (!reduce.empty()) return s.accumulate(nest.stage, reduce, cut.beside, cut.lane);
  s.unroll(cut.beside);
  s.vectorize(cut.lane);
}

void map_simply(ScheduleBuilder& s, const Structure& k, const Nest& nest) {
  const std::string& label = nest.stage.label();
  if (!s.has(nest.stage)) return;  // inlined
  const bool simple = nest.reduce.empty() && nest.alone && !nest.in_scan;
  if (simple && s.choose_switch("steps_" + label, true)) return s.map_nest(nest.stage);
  if (nest.spatial.empty() || !s.has(nest.spatial.back())) return;
  if (!nest.alone) {  // the nest's first store stands for all of them
    for (const Nest& other : k.nests) {
      if (other.stage == nest.stage) break;
      if (other.spatial == nest.spatial) return;
    }
  }
  const Lanes cut = cut_lanes(s, k, nest, nest.spatial);
  map_lanes(s, nest, nest.sums() ? nest.reduce : Loops{}, cut);
  if (nest.sums()) s.unroll_part(nest.reduce.back());
  s.parallelize(cut.outer, label + "_p");
}

void map_others(ScheduleBuilder& s, const Structure& k, const Stages& taken) {
  for (const Nest& nest : k.nests)
    if (!k.central(nest.stage) && std::ranges::find(taken, nest.stage) == taken.end())
      map_simply(s, k, nest);
}

void place_producers(ScheduleBuilder& s, const Structure& k) {
  for (const Nest& nest : k.nests) {
    const bool read_by_sums = std::ranges::any_of(
        nest.readers, [&](const Stage& reader) { return k.central(reader); });
    if (nest.pure() && read_by_sums && s.choose(nest.stage.label(), 0, {1}) == 1)
      s.compute_inline(nest.stage);
  }
}

void sketch_plain(ScheduleBuilder& s, const Structure& k) {
  for (const Nest& nest : k.nests) map_simply(s, k, nest);
}

void sketch_blocks(ScheduleBuilder& s, const Structure& k) {
  const Nest& last = k.nests.back();
  for (const Nest& nest : k.nests)
    if (nest.stage != last.stage) map_simply(s, k, nest);
  Loops loops;
  for (const Loop& loop : last.spatial)
    if (s.extent(loop) != 1) loops.push_back(loop);
  if (loops.size() < 2 || !last.reduce.empty())
    return s.fail("stage '" + last.stage.label() + "' has no two loops to tile");
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(last.store->buffer).dtype));
  const std::vector<int64_t> around = counted(0, static_cast<int64_t>(loops.size()) - 2);
  const auto row = static_cast<size_t>(
      std::min(s.choose("row", around.back(), around), around.back()));
  const int64_t rows = s.choose("rows", 4, {2, 8, 16}),
                columns = lanes * s.choose("vectors", 1, {2, 4});
  const bool across = s.choose_switch("across", false);  // true: vectors go along the rows
  const auto tile = [&](const Loop& loop, int64_t factor) {
    return s.split(loop, factor, Tail::guard, loop.name() + "_t", loop.name() + "_r");
  };
  const Loop i = loops[row], j = loops.back();
  const auto in_i = tile(i, across ? columns : rows), in_j = tile(j, across ? rows : columns);
  Loops order;
  for (const Loop& loop : last.spatial)
    order.push_back(loop == i ? in_i.outer : loop == j ? in_j.outer : loop);
  const Loops outer = order;
  order.push_back(across ? in_j.inner : in_i.inner);
  order.push_back(across ? in_i.inner : in_j.inner);
  s.reorder(order);
  if (s.choose_switch("unroll", true)) s.unroll(order[order.size() - 2]);
  s.vectorize(order.back());
  s.parallelize(outer, last.stage.label() + "_p");
}

}  // namespace tw::generated
