// skew k 16 [m // 4 % 4 * 4]
//   for m in 32 { for k in 4 reduce {        for m in 32 { for k in 16 reduce {
//     c: c[m] += x[m // 4 * 4 + k]             c: c[m] += x[m // 16 * 16 + k]
//                * w[m, k]              ->                * w[m, k - m // 4 % 4 * 4]
//                                                        where m // 4 % 4 * 4 <= k
//                                                              && k < m // 4 % 4 * 4 + 4
//   } }                                      } }
//
// A reduce loop begins later in a longer one, by an offset that outer loops give. What an operand
// reads no longer depends on the offset, if its index had it too: groups of a convolution then
// share their channels, and conditions leave out those of the others. Legal: a serial reduce loop,
// whose stores combine. The offset is an index in terms of outer loops. It can be shown that it is
// not negative, and that the loop fits in the longer one.
#include "ir/schedule/nest.h"

namespace tw::sched {

// Requires that the loops and symbols in scope give the offset.
static Error check_offset(const Kernel& kernel, std::span<const Stmt> path, const Expr& offset) {
  std::string unknown;
  visit(offset, [&](const Expr& e) {
    if (is<expr::Load>(e) || e.type() != DType::i64) unknown = to_string(e);
    const std::string* name = var_name(e);
    if (!name) return;
    bool known = std::ranges::find(kernel.symbols, *name) != kernel.symbols.end();
    for (const Stmt& s : path.first(path.size() - 1)) {
      const auto* around = as<stmt::Loop>(s);
      known |= around && around->var == *name;
    }
    if (!known) unknown = *name;
  });
  return unknown.empty() ? Error::success()
                         : illegal("the offset has '{0}', which no outer loop gives", unknown);
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::Skew& s) {
  TW_ASSIGN(const std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  if (loop.role != AxisRole::reduce)
    return illegal("loop '{0}' is a {1} loop: only reduce loops are skewed", s.loop,
                   axis_role_name(loop.role));
  if (s.offset.size() != 1)
    return illegal("one offset is expected, {0} are given", s.offset.size());
  TW_TRY(check_no_tokens(kernel, loop));
  for (const StoreRef& store : stores_of(loop.body))
    if (store->combiner == Combiner::none)
      return illegal("stage '{0}' in the reduce loop '{1}' does not combine", store->label, s.loop);
  TW_TRY(check_offset(kernel, path, s.offset.front()));
  const Ranges ranges = ranges_of(kernel, path);
  const Expr offset = simplify(s.offset.front(), ranges), last = offset + loop.extent;
  if (!can_prove(le(Expr(0), offset), ranges) || !can_prove(le(last, Expr(s.extent)), ranges))
    return illegal("it cannot be shown that '{0}' of extent {1} fits in {2} behind {3}", s.loop,
                   to_string(loop.extent), s.extent, to_string(offset));
  const Expr k = var(s.loop), inside = logical_and(le(offset, k), lt(k, last));
  const Stmt body = with_condition(substitute(loop.body, s.loop, k - offset), inside);
  return with_replaced(kernel, path,
                       make_loop(s.loop, Expr(s.extent), body, LoopKind::serial, loop.role));
}

}  // namespace tw::sched
