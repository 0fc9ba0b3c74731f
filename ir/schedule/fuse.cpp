// fuse i j -> f
//   for i in 6 {                      for f in 48 {
//     for j in 8 {                      y: y[f // 8, f % 8] = x[f // 8, f % 8]
//       y: y[i, j] = x[i, j]    ->    }
//   } }
//
// Legal: i contains only j, except for ifs, which move inside. Both loops are serial and of one
// role. The extent of j does not use i.
#include "ir/schedule/nest.h"

namespace tw::sched {

Expected<Kernel> apply_step(const Kernel& kernel, const step::Fuse& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.outer));
  TW_ASSIGN(std::vector<Stmt> inner_path, loop_path(kernel, s.inner));
  const auto& outer = get<stmt::Loop>(path.back());
  const auto& inner = get<stmt::Loop>(inner_path.back());
  TW_TRY(check_serial(outer));
  TW_TRY(check_serial(inner));
  TW_TRY(check_new_loop(kernel, s.fused));
  std::vector<Expr> conditions;
  Stmt at = outer.body;
  while (const auto* guard = as<stmt::If>(at)) {
    conditions.push_back(guard->condition);
    at = guard->body;
  }
  if (at != inner_path.back())
    return illegal("loop '{0}' is not the only statement in loop '{1}'", s.inner, s.outer);
  if (outer.role != inner.role)
    return illegal("loop '{0}' is {1}, loop '{2}' is {3}: only loops of one role can be fused",
                   s.outer, axis_role_name(outer.role), s.inner, axis_role_name(inner.role));
  if (uses_var(inner.extent, s.outer))
    return illegal("the extent of loop '{0}' depends on '{1}'", s.inner, s.outer);
  const std::optional<int64_t> outers = as_const(outer.extent), inners = as_const(inner.extent);
  if (outers && inners && *inners > 0 && *outers > kMostExtentOfKernels / *inners)
    return illegal("loops '{0}' and '{1}' have more than {2} iterations together", s.outer, s.inner,
                   kMostExtentOfKernels);
  for (const Expr& condition : conditions)
    if (has_load(condition))
      return illegal("the condition between loops '{0}' and '{1}' reads a buffer", s.outer,
                     s.inner);

  Stmt body = inner.body;
  for (size_t i = conditions.size(); i-- > 0;) body = make_if(conditions[i], std::move(body));
  body = substitute(body, s.outer, floor_div(var(s.fused), inner.extent));
  body = substitute(body, s.inner, floor_mod(var(s.fused), inner.extent));
  return with_replaced(kernel, path,
                       make_loop(s.fused, outer.extent * inner.extent, std::move(body),
                                 LoopKind::serial, outer.role));
}

}  // namespace tw::sched
