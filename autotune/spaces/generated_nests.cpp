// The structure of a kernel, and the simple mapping of stages that are not in the centre of a
// sketch.
#include <algorithm>

#include "autotune/spaces/generated.h"
#include "ir/kernel/stack_limits.h"
#include "ir/schedule/nest.h"

namespace tw::generated {
namespace {

constexpr double kGoodPart = 1.0 / 8;  // of the work of the stage that has most

double count(const Expr& extent) {
  constexpr int64_t kTypicalSymbol = 8;
  return static_cast<double>(eval_int(extent, [](std::string_view) { return kTypicalSymbol; }));
}

Nest nest_of(const Kernel& kernel, const Stmt& store) {
  Nest nest;
  nest.label = store->label;
  nest.buffer = kernel.buffer(store->buffer).name;
  nest.temp = kernel.buffer(store->buffer).role == BufferRole::temp;
  nest.store = store;
  Stmt own;  // the outermost statement of the nest
  for (const Stmt& s : path_to(kernel.body, store->label)) {
    if (s->kind != StmtKind::loop) continue;
    if (s->role == AxisRole::scan) {
      nest.in_scan = true;
      continue;
    }
    if (!own) own = s;
    (s->role == AxisRole::reduce ? nest.reduce : nest.spatial).push_back(s->var);
    nest.points *= count(s->extent);
  }
  nest.alone = own && stores_of(own).size() == 1;
  for (const Stmt& other : stores_of(kernel.body)) {
    bool reads = false;
    sched::visit_exprs(*other, [&](const Expr& e) {
      visit(e, [&](const Expr& n) {
        reads |= n->kind == ExprKind::load && n->buffer == store->buffer;
      });
    });
    if (reads && other->label != store->label) nest.readers.push_back(other->label);
  }
  return nest;
}

}  // namespace

const Nest& Structure::nest(const std::string& label) const {
  const auto found = std::ranges::find(nests, label, &Nest::label);
  TW_CHECK(found != nests.end(), "no stage '{0}'", label);
  return *found;
}

bool Structure::central(const std::string& label) const {
  return std::ranges::any_of(sums, [&](size_t i) { return nests[i].label == label; });
}

Structure structure_of(const Kernel& kernel) {
  Structure k{kernel, {}, {}};
  double most = 0;
  for (const Stmt& store : stores_of(kernel.body)) {
    k.nests.push_back(nest_of(kernel, store));
    most = std::max(most, k.nests.back().points);
  }
  for (size_t i = 0; i < k.nests.size(); ++i) {
    const Nest& nest = k.nests[i];
    if (nest.sums() && nest.alone && nest.temp && !nest.spatial.empty() &&
        nest.points >= kGoodPart * most)
      k.sums.push_back(i);
  }
  return k;
}

std::string loop_name(const std::string& stage, const std::string& var) {
  return sched::axis_name(stage, var);
}

void keep_near(ScheduleBuilder& s, const std::string& buffer) {
  if (s.bytes_of(buffer).value_or(kMaxStackBufferBytes + 1) > kMaxStackBufferBytes)
    s.set_scope(buffer, "thread");
}

void map_simply(ScheduleBuilder& s, const Structure& k, const Nest& nest) {
  if (!s.has_stage(nest.label)) return;  // inlined
  if (nest.reduce.empty() && nest.alone && !nest.in_scan) return s.map_nest(nest.label);
  std::vector<std::string> outer = nest.spatial;
  if (outer.empty() || !s.has_loop(outer.back())) return;
  if (!nest.alone) {  // the nest's first store stands for all
    for (const Nest& other : k.nests) {
      if (other.label == nest.label) break;
      if (other.spatial == nest.spatial) return;
    }
  }
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(nest.store->buffer).dtype)) *
                        s.choose("vectors_" + nest.label, 1, {2, 4});
  std::string lane = outer.back();
  outer.pop_back();
  if (s.extent(lane).value_or(lanes + 1) > lanes) {
    s.split(lane, lanes, Tail::guard, lane + "_o", lane + "_v");
    outer.push_back(lane + "_o");
    lane += "_v";
  }
  if (nest.sums()) {
    std::vector<std::string> reduce = nest.reduce;
    s.accumulate(nest.label, reduce, {}, lane);
    s.unroll_part(reduce.back());
  } else {
    s.vectorize(lane);
  }
  s.parallelize(outer, nest.label + "_p");
}

void map_others(ScheduleBuilder& s, const Structure& k, const std::vector<std::string>& taken) {
  for (const Nest& nest : k.nests)
    if (!k.central(nest.label) && std::ranges::find(taken, nest.label) == taken.end())
      map_simply(s, k, nest);
}

void place_producers(ScheduleBuilder& s, const Structure& k) {
  for (const Nest& nest : k.nests) {
    const bool read_by_sums = std::ranges::any_of(
        nest.readers, [&](const std::string& label) { return k.central(label); });
    if (nest.pure() && read_by_sums && s.choose(nest.label, 0, {1}) == 1)
      s.compute_inline(nest.label);
  }
}

void sketch_plain(ScheduleBuilder& s, const Structure& k) {
  for (const Nest& nest : k.nests) map_simply(s, k, nest);
}

void sketch_blocks(ScheduleBuilder& s, const Structure& k) {
  const Nest& last = k.nests.back();
  for (const Nest& nest : k.nests)
    if (nest.label != last.label) map_simply(s, k, nest);
  std::vector<std::string> loops;
  for (const std::string& loop : last.spatial)
    if (s.extent(loop) != 1) loops.push_back(loop);
  if (loops.size() < 2 || !last.reduce.empty())
    return s.fail("stage '" + last.label + "' has no two loops to tile");
  const int64_t lanes = s.target().lanes(dtype_bytes(k.kernel.buffer(last.store->buffer).dtype));
  const std::vector<int64_t> around = counted(0, static_cast<int64_t>(loops.size()) - 2);
  const auto row = static_cast<size_t>(s.choose("row", around.back(), around));
  const int64_t rows = s.choose("rows", 4, {2, 8, 16}),
                columns = lanes * s.choose("vectors", 1, {2, 4});
  const bool across = s.choose_switch("across", false);  // vectors along the rows
  const std::string i = loops[row], j = loops.back();
  s.split(i, across ? columns : rows, Tail::guard, i + "_t", i + "_r");
  s.split(j, across ? rows : columns, Tail::guard, j + "_t", j + "_r");
  std::vector<std::string> order;
  for (const std::string& loop : last.spatial)
    order.push_back(loop == i || loop == j ? loop + "_t" : loop);
  const std::vector<std::string> outer = order;
  order.push_back((across ? j : i) + "_r");
  order.push_back((across ? i : j) + "_r");
  s.reorder(order);
  if (s.choose_switch("unroll", true)) s.unroll(order[order.size() - 2]);
  s.vectorize(order.back());
  s.parallelize(outer, last.label + "_p");
}

}  // namespace tw::generated
