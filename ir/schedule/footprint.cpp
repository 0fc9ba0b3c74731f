#include "ir/schedule/footprint.h"

#include <algorithm>

namespace tw::sched {

std::vector<Access> accesses(const Kernel& kernel, BufferId buffer, const std::vector<Stmt>& path) {
  std::vector<Access> found;
  visit_loads(path.empty() ? kernel.body : children(path.back())[0],
              [&](const expr::Load& load, std::span<const Stmt> scope) {
                if (load.buffer != buffer) return;
                Access access{load.indices, {}, ranges_of(kernel, path)};
                add_ranges(access.inner, scope);
                add_ranges(access.all, scope);
                found.push_back(std::move(access));
              });
  return found;
}

namespace {

// The smaller or larger of two bounds, decided by the ranges where they suffice
Expr pick(const Expr& a, const Expr& b, bool smaller, const Ranges& ranges) {
  if (can_prove(le(a, b), ranges)) return smaller ? a : b;
  if (can_prove(le(b, a), ranges)) return smaller ? b : a;
  return smaller ? min(a, b) : max(a, b);
}

std::optional<Interval> union_of(const std::vector<Access>& list, size_t dim, const Ranges& outer) {
  std::optional<Interval> all;
  std::vector<Expr> seen;  // equal indices use the same loops, and so are one interval
  for (const Access& access : list) {
    const Expr& index = access.indices[dim];
    if (std::ranges::any_of(seen, [&](const Expr& other) { return equal(other, index); })) continue;
    seen.push_back(index);
    if (has_load(index)) return std::nullopt;
    std::optional<Interval> one = interval_over(index, access.inner, access.all);
    if (!one) return std::nullopt;
    one->min = simplify(one->min, outer);
    one->max = simplify(one->max, outer);
    if (!all) {
      all = one;
      continue;
    }
    all->min = pick(all->min, one->min, true, outer);
    all->max = pick(all->max, one->max, false, outer);
  }
  return all;
}

}  // namespace

DimFootprint footprint_of_dim(const std::vector<Access>& list, size_t dim, const Expr& domain,
                              const Ranges& outer) {
  const DimFootprint whole{Expr(0), domain, true};
  std::optional<Interval> interval = union_of(list, dim, outer);
  if (!interval) return whole;
  const std::optional<int64_t> size = as_const(domain);
  if (const auto low = as_const(interval->min); low && *low < 0) interval->min = Expr(0);
  if (const auto high = as_const(interval->max); high && size && *high >= *size)
    interval->max = Expr(*size - 1);
  const std::optional<int64_t> extent =
      constant_bounds(interval->max - interval->min + Expr(1), outer).max;
  if (!extent || *extent < 1 || (size && *extent >= *size)) return whole;
  return {interval->min, Expr(*extent), false};
}

Stmt footprint_nest(const LoweredStage& stage, const std::vector<DimFootprint>& footprints,
                    const Ranges& outer, bool shrunk) {
  const std::string& label = stage.store->label;
  struct Axis {
    LoopRef loop;
    Expr extent, guard;
  };
  std::vector<Axis> axes;
  stmt::Store store = *stage.store;
  std::vector<std::pair<std::string, Expr>> values;  // the old spatial variables' values
  Ranges ranges = outer;
  for (size_t a = 0; a < stage.spatial.size(); ++a) {
    const auto dim = std::ranges::find(stage.loop_of_dim, static_cast<int>(a));
    const LoopRef& loop = stage.spatial[a];
    if (dim == stage.loop_of_dim.end()) {  // a loop of extent 1, without an index
      values.emplace_back(loop->var, Expr(0));
      continue;
    }
    const size_t d = static_cast<size_t>(dim - stage.loop_of_dim.begin());
    const bool single = is_const(footprints[d].extent, 1);
    const Expr offset = single ? Expr(0) : var(axis_name(label, loop->var));
    if (!single)
      ranges.insert_or_assign(axis_name(label, loop->var),
                              Range{Expr(0), simplify(footprints[d].extent - Expr(1))});
    const Expr point = simplify(footprints[d].min + offset, ranges);
    store.indices[d] = shrunk ? offset : point;
    values.emplace_back(loop->var, point);
    Axis axis{loop, single ? Expr() : footprints[d].extent, Expr()};
    if (!can_prove(le(Expr(0), point), ranges)) axis.guard = le(Expr(0), point);
    if (!can_prove(lt(point, loop->extent), ranges))
      axis.guard = logical_and(axis.guard, lt(point, loop->extent));
    axes.push_back(std::move(axis));
  }
  const auto in_footprint = [&](Expr e) {
    for (const auto& [name, value] : values)
      if (e.defined()) e = substitute(e, name, value);
    return e;
  };
  store.value = in_footprint(store.value);
  store.where = in_footprint(store.where);
  store.init = in_footprint(store.init);
  Stmt nest = make_store(std::move(store));
  for (size_t i = stage.reduce.size(); i-- > 0;)
    nest = make_loop(stage.reduce[i]->var, stage.reduce[i]->extent, std::move(nest),
                     LoopKind::serial, AxisRole::reduce);
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].guard.defined()) nest = make_if(axes[i].guard, std::move(nest));
    if (axes[i].extent.defined())
      nest = make_loop(axis_name(label, axes[i].loop->var), axes[i].extent, std::move(nest));
  }
  return nest;
}

}  // namespace tw::sched
