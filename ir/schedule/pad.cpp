// pad k 4
//   for k in 10 reduce {                for k in 12 reduce {
//     c: c[i] += x[i, k] init 0   ->      c: c[i] += x[i, k] where k < 10 init 0
//   }                                   }
// pad i 4
//   temp t: f32[10]                     temp t: f32[12]
//   for i in 10 {                       for i in 12 {
//     t: t[i] = x[i]              ->      t: t[i] = select(i < 10, x[i], 0)
//   }                                   }
//
// The extent becomes a multiple of the factor, so splits by it need no guard. The added points
// contribute nothing to sums. In a temp, which grows with them, they hold 0 or the init. Legal: a
// serial loop. In a reduce loop every store combines. In a spatial loop every store is to a temp,
// and exactly one index is the loop's variable, alone.
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// The dimension whose index is the variable alone; -1: there is none, or the variable has other
// uses.
int own_dim(const stmt::Store& store, const std::string& v) {
  int dim = -1;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!uses_var(store.indices[d], v)) continue;
    if (dim >= 0 || !is<expr::Var>(store.indices[d])) return -1;
    dim = static_cast<int>(d);
  }
  return dim;
}

Error grow(Kernel& out, const stmt::Store& store, const stmt::Loop& loop, const Expr& extent) {
  Buffer& buffer = out.buffer(store.buffer);
  const int dim = own_dim(store, loop.var);
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}', which cannot grow", store.label,
                   buffer.name);
  if (dim < 0)
    return illegal("loop '{0}' is not by itself an index of stage '{1}'", loop.var, store.label);
  Expr& size = buffer.shape[static_cast<size_t>(dim)];
  const std::optional<int64_t> now = as_const(size), wanted = as_const(extent);
  if (now && wanted ? *now < *wanted : equal(size, loop.extent)) size = extent;
  else if (!now || !wanted)
    return illegal("it cannot be shown that '{0}' has room for the added points", buffer.name);
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Pad& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  if (s.factor < 1)
    return illegal("the factor {0} for loop '{1}' is not positive", s.factor, s.loop);
  if (loop.role == AxisRole::scan)
    return illegal("loop '{0}' is a scan: it cannot run longer", s.loop);
  const Ranges ranges = ranges_of(kernel, path);
  if (is_const(simplify(floor_mod(loop.extent, Expr(s.factor)), ranges), 0)) return kernel;
  TW_TRY(check_no_tokens(kernel, loop));
  const Expr extent = simplify(ceil_div(loop.extent, s.factor) * Expr(s.factor), ranges),
             inside = lt(var(s.loop), loop.extent);
  Kernel out = kernel;
  for (const StoreRef& store : stores_of(loop.body)) {
    if (loop.role == AxisRole::spatial) TW_TRY(grow(out, *store, loop, extent));
    else if (store->combiner == Combiner::none)
      return illegal("stage '{0}' in the reduce loop '{1}' does not combine", store->label, s.loop);
  }
  const Stmt body = rewrite(loop.body, [&](const Stmt& inner) -> Stmt {
    const auto* found = as<stmt::Store>(inner);
    if (!found) return nullptr;
    stmt::Store store = *found;
    if (store.combiner == Combiner::none)
      store.value = select(inside, store.value, imm(0, store.value.type()));
    else store.where = logical_and(inside, store.where);
    return make_store(std::move(store));
  });
  return with_replaced(out, path, make_loop(s.loop, extent, body, LoopKind::serial, loop.role));
}

}  // namespace tw::sched
