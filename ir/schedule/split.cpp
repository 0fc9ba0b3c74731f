// split i 4 -> i0 i1
//   for i in 10 {            for i0 in 3 { for i1 in 4 {
//     y: y[i] = x[i]   ->      if i0*4+i1 < 10 { y: y[i0*4+i1] = x[i0*4+i1] }
//   }                        } }
// split i 4 shift -> i0 i1
//   for i in 10 {            for i0 in 3 { for i1 in 4 {
//     y: y[i] = x[i]   ->      y: y[min(i0*4, 6)+i1] = x[min(i0*4, 6)+i1]
//   }                        } }
//
// Legal: a serial loop, factor >= 1. A reduce tail becomes a `where` of the combining stores. With
// shift, points of the overlap are computed twice: the loop is spatial, its constant extent is >=
// factor, and everything inside only overwrites (check_rules).
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// Masks a reduce tail in the store, so the nest stays perfect. An if guards what a where cannot
// express.
Stmt guard_tail(const Stmt& body, const Expr& condition, AxisRole role) {
  bool maskable = role == AxisRole::reduce;
  visit(body, [&](const Stmt& s) { maskable &= !is<stmt::Signal, stmt::Wait, stmt::Barrier>(s); });
  for (const StoreRef& store : stores_of(body))
    maskable &= store->combiner != Combiner::none && !has_load(store->where) && !store->async;
  return maskable ? with_condition(body, condition) : make_if(condition, body);
}

Error check_shift(const stmt::Loop& loop, int64_t factor) {
  if (loop.role != AxisRole::spatial)
    return illegal("loop '{0}' is a {1} loop: only spatial loops can be shifted", loop.var,
                   axis_role_name(loop.role));
  const std::optional<int64_t> extent = as_const(loop.extent);
  if (!extent || *extent < factor)
    return illegal("shift needs a constant extent of at least {0} in loop '{1}'", factor, loop.var);
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Split& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  if (s.factor < 1)
    return illegal("the factor {0} for loop '{1}' is not positive", s.factor, s.loop);
  if (s.outer != s.loop) TW_TRY(check_new_loop(kernel, s.outer));
  if (s.inner != s.loop) TW_TRY(check_new_loop(kernel, s.inner));
  if (s.outer == s.inner) return illegal("loop '{0}' needs two different new names", s.loop);
  const bool shift = s.tail == Tail::shift;
  if (shift) TW_TRY(check_shift(loop, s.factor));
  if (shift) TW_TRY(check_no_tokens(kernel, loop));  // some iterations would exchange tokens twice

  const Ranges ranges = ranges_of(kernel, path);
  const bool divides = is_const(simplify(floor_mod(loop.extent, Expr(s.factor)), ranges), 0);
  Expr base = var(s.outer) * Expr(s.factor);
  if (shift && !divides) base = min(base, loop.extent - Expr(s.factor));
  const Expr index = base + var(s.inner);
  Stmt body = substitute(loop.body, s.loop, index);
  if (!shift && !divides) body = guard_tail(body, lt(index, loop.extent), loop.role);
  const Stmt inner = make_loop(s.inner, Expr(s.factor), std::move(body), LoopKind::serial,
                               loop.role);
  return with_replaced(
      kernel, path,
      make_loop(s.outer, ceil_div(loop.extent, s.factor), inner, LoopKind::serial, loop.role));
}

}  // namespace tw::sched
