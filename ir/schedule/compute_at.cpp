// compute_at c i0
//   for i in 56 { for k in 64 reduce {            for i0 in 4 {
//     c: c[i] += a[i, k] init 0                     for c_i in 14 { for k in 64 reduce {
//   } }                                       ->      c: c[c_i] += a[i0*14+c_i, k] init 0
//   for i0 in 4 { for i1 in 14 {                    } }
//     y: y[i0*14+i1] = max(0, c[i0*14+i1])          for i1 in 14 { y: y[i0*14+i1] = max(0, c[i1]) }
//   } }                                           }
// The region of c that the loop's body reads: a minimum in the outer variables and a constant extent (or a bound of it) per dimension, or
// the whole dimension where no such interval can be shown. c shrinks to it, loops are named "<stage>_<var>" (none for extent 1), reduce loops keep
// their names. Points of the region outside c's domain are guarded. A global c of at most kMaxStackBytes moves to the stack.
// Under a reduce loop of the consumer the init becomes a nest of its own, as it must run in each of that loop's iterations.
// Legal: c is a temp with its nest as lowered; all readers are in the loop, which is not a vector loop; what c reads is not changed later.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

struct DimRegion {
  Expr min;                      // in terms of variables outside of the loop's body
  Expr extent;                   // constant, or the domain's when `whole`
  bool whole = false;            // min 0, extent that of the domain
};

struct Access {
  std::vector<Expr> indices;
  Ranges inner, all;             // ranges of the loops inside the attach loop; of everything in scope
};

// Loads of the buffer in the body of the loop at the end of `path`.
std::vector<Access> accesses(const Kernel& kernel, BufferId buffer, const std::vector<Stmt>& path) {
  std::vector<Access> found;
  visit_loads(path.back()->body[0], [&](const ExprNode& load, std::span<const Stmt> scope) {
    if (load.buffer != buffer) return;
    Access access{load.args, {}, ranges_of(kernel, path)};
    for (const Stmt& s : scope) {
      if (s->kind != StmtKind::loop) continue;
      add_range(access.inner, *s);
      add_range(access.all, *s);
    }
    found.push_back(std::move(access));
  });
  return found;
}

// The smaller (larger) of two bounds.
Expr pick(const Expr& a, const Expr& b, bool smaller, const Ranges& ranges) {
  if (can_prove(le(a, b), ranges)) return smaller ? a : b;
  if (can_prove(le(b, a), ranges)) return smaller ? b : a;
  return smaller ? min(a, b) : max(a, b);
}

std::optional<Interval> union_of(const std::vector<Access>& list, size_t dim, const Ranges& outer) {
  std::optional<Interval> all;
  for (const Access& access : list) {
    if (has_load(access.indices[dim])) return std::nullopt;
    std::optional<Interval> one = interval_over(access.indices[dim], access.inner, access.all);
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

DimRegion region_of_dim(const std::vector<Access>& list, size_t dim, const Expr& domain, const Ranges& outer) {
  const DimRegion whole{Expr(0), domain, true};
  std::optional<Interval> interval = union_of(list, dim, outer);
  if (!interval) return whole;
  const std::optional<int64_t> size = as_const(domain);
  if (const auto low = as_const(interval->min); low && *low < 0) interval->min = Expr(0);
  if (const auto high = as_const(interval->max); high && size && *high >= *size) interval->max = Expr(*size - 1);
  const std::optional<int64_t> extent = constant_bounds(interval->max - interval->min + Expr(1), outer).max;
  if (!extent || *extent < 1 || (size && *extent >= *size)) return whole;
  return {interval->min, Expr(*extent), false};
}

// c's nest over the region, guarded where the region may leave the domain. `outer`: ranges in scope at the loop's body.
Stmt region_nest(const LoweredStage& stage, const std::vector<DimRegion>& regions, const Ranges& outer) {
  const std::string& label = stage.store->label;
  struct Axis {
    Stmt loop;
    Expr extent, guard;
  };
  std::vector<Axis> axes;
  StmtNode store = *stage.store;
  std::vector<std::pair<std::string, Expr>> values;  // of the old spatial variables
  Ranges ranges = outer;
  for (size_t a = 0; a < stage.spatial.size(); ++a) {
    const auto dim = std::ranges::find(stage.loop_of_dim, static_cast<int>(a));
    const Stmt& loop = stage.spatial[a];
    if (dim == stage.loop_of_dim.end()) {  // of extent 1, no index
      values.emplace_back(loop->var, Expr(0));
      continue;
    }
    const size_t d = static_cast<size_t>(dim - stage.loop_of_dim.begin());
    const bool single = is_const(regions[d].extent, 1);
    const Expr offset = single ? Expr(0) : var(axis_name(label, loop->var));
    if (!single) ranges.insert_or_assign(axis_name(label, loop->var), Range{Expr(0), simplify(regions[d].extent - Expr(1))});
    const Expr point = simplify(regions[d].min + offset, ranges);
    store.indices[d] = offset;
    values.emplace_back(loop->var, point);
    Axis axis{loop, single ? Expr() : regions[d].extent, Expr()};
    if (!can_prove(le(Expr(0), point), ranges)) axis.guard = le(Expr(0), point);
    if (!can_prove(lt(point, loop->extent), ranges)) axis.guard = logical_and(axis.guard, lt(point, loop->extent));
    axes.push_back(std::move(axis));
  }
  const auto in_region = [&](Expr e) {
    for (const auto& [name, value] : values)
      if (e.defined()) e = substitute(e, name, value);
    return e;
  };
  store.value = in_region(store.value);
  store.where = in_region(store.where);
  store.init = in_region(store.init);
  Stmt nest = make_store(std::move(store));
  for (size_t i = stage.reduce.size(); i-- > 0;)
    nest = make_loop(stage.reduce[i]->var, stage.reduce[i]->extent, std::move(nest), LoopKind::serial, AxisRole::reduce);
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].guard.defined()) nest = make_if(axes[i].guard, std::move(nest));
    if (axes[i].extent.defined()) nest = make_loop(axis_name(label, axes[i].loop->var), axes[i].extent, std::move(nest));
  }
  return nest;
}

Error check_target(const Kernel& kernel, const LoweredStage& stage, const std::vector<Stmt>& path, size_t readers) {
  const std::string& label = stage.store->label;
  const Buffer& buffer = kernel.buffer(stage.store->buffer);
  const StmtNode& loop = *path.back();
  if (buffer.role != BufferRole::temp) return illegal("stage '{0}' writes the parameter '{1}', which must be complete", label, buffer.name);
  for (size_t i = 0; i < stage.scans.size(); ++i)
    if (i + 1 >= path.size() || path[i] != stage.scans[i])
      return illegal("stage '{0}' is in scan loop '{1}', loop '{2}' is not: it would see the last iteration only", label, stage.scans[i]->var, loop.var);
  if (std::ranges::find(path, stage.nest) != path.end()) return illegal("loop '{0}' belongs to stage '{1}' itself", loop.var, label);
  if (loop.loop_kind == LoopKind::vector) return illegal("loop '{0}' is a vector loop: nothing can be computed in it", loop.var);
  TW_TRY(check_movable(kernel, stage));
  if (readers == 0) return illegal("nothing in loop '{0}' reads '{1}'", loop.var, buffer.name);
  size_t all = 0;
  std::string outside;
  for (const Stmt& store : stores_of(kernel.body)) {
    size_t here = 0;
    visit_loads(store, [&](const ExprNode& load, std::span<const Stmt>) { here += load.buffer == stage.store->buffer; });
    all += here;
    if (here > 0 && find_path(path.back(), [&](const StmtNode& s) { return &s == store.get(); }).empty()) outside = store->label;
  }
  if (!outside.empty()) return illegal("stage '{0}' reads '{1}' outside of loop '{2}'", outside, buffer.name, loop.var);
  if (all != readers) return illegal("a loop extent or condition reads '{0}'", buffer.name);
  for (const Stmt& axis : stage.spatial)
    if (axis_name(label, axis->var) != axis->var) TW_TRY(check_new_loop(kernel, axis_name(label, axis->var)));
  return Error::success();
}

// The init of a combining stage under somebody else's reduce loops becomes a nest of its own.
Expected<Stmt> separate_init(const Kernel& kernel, Stmt nest, const std::string& label) {
  const std::vector<Stmt> path = find_path(nest, [&](const StmtNode& s) { return s.kind == StmtKind::store; });
  TW_TRY(check_new_stage(kernel, init_label(label)));
  for (const Stmt& s : path)
    if (s->kind == StmtKind::loop && s->role == AxisRole::spatial) TW_TRY(check_new_loop(kernel, init_name(s->var)));
  return make_block({init_nest(path), replace(nest, path.back(), without_init(path.back()))});
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeAt& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const BufferId id = stage.store->buffer;
  const std::vector<Access> readers = accesses(kernel, id, path);
  TW_TRY(check_target(kernel, stage, path, readers.size()));

  const Ranges outer = ranges_of(kernel, path);
  Kernel out = kernel;
  Buffer& buffer = out.buffer(id);
  std::vector<DimRegion> regions;
  for (size_t dim = 0; dim < buffer.shape.size(); ++dim) {
    regions.push_back(region_of_dim(readers, dim, stage.extent_of_dim(dim), outer));
    buffer.shape[dim] = regions[dim].extent;
  }
  const std::optional<int64_t> bytes = constant_bytes(buffer);
  if (buffer.scope == "global" && bytes && *bytes <= kMaxStackBytes) buffer.scope = "stack";

  Stmt nest = region_nest(stage, regions, outer);
  const bool in_reduce = std::ranges::any_of(path, [](const Stmt& p) { return p->kind == StmtKind::loop && p->role == AxisRole::reduce; });
  if (in_reduce && stage.store->init.defined()) {
    TW_ASSIGN(nest, separate_init(kernel, std::move(nest), s.stage));
  }
  const Stmt consumer = rewrite_exprs(path.back()->body[0], [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      if (e->kind != ExprKind::load || e->buffer != id) return Expr();
      std::vector<Expr> indices = e->args;
      for (size_t dim = 0; dim < indices.size(); ++dim) indices[dim] = indices[dim] - regions[dim].min;
      return load(id, e->type, std::move(indices));
    });
  });
  const StmtNode& loop = *path.back();
  const Stmt with = make_loop(loop.var, loop.extent, make_block({nest, consumer}), loop.loop_kind, loop.role);
  Kernel moved = with_replaced(out, path, with);
  moved.body = replace(moved.body, stage.nest, nullptr);
  return moved;
}

}  // namespace tw::sched
