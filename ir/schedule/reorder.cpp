// reorder k i j
//   for i in 4 {                                 for k in 8 reduce {
//     if i < n {                                   for i in 4 {
//       for j in 16 { for k in 8 reduce {    ->      if i < n { for j in 16 {
//         c: c[i, j] += a[i, k] * b[k, j]              c: c[i, j] += a[i, k] * b[k, j]
//             init 0                                       init 0
//   } } } }                                      } } } }
//
// Permutes the named loops; loops between them stay. Ifs between them move as far out as possible.
// Legal: there is one perfect nest from the outermost to the innermost named loop. Scan loops keep
// their order relative to all others. Vector loops stay innermost and parallel ones outermost
// (check_rules). Loops that exchange tokens with others, or slots of temps, keep their order.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

struct Chain {
  std::vector<LoopRef> loops;    // outermost first
  std::vector<Expr> conditions;  // conditions of the ifs between the loops
  Stmt body;
};

Expected<Chain> perfect_chain(const Stmt& first, const std::vector<std::string>& names) {
  Chain chain;
  size_t left = names.size();
  Stmt s = first;
  while (left > 0) {
    if (const auto* guard = as<stmt::If>(s)) {
      if (has_load(guard->condition))
        return illegal("a condition inside loop '{0}' reads a buffer", chain.loops.back()->var);
      chain.conditions.push_back(guard->condition);
    } else if (const auto* loop = as<stmt::Loop>(s)) {
      left -= static_cast<size_t>(std::ranges::count(names, loop->var));
      chain.loops.emplace_back(s);
    } else {
      return illegal(
          "the loops are not one perfect nest: there are several statements in loop '{0}', or the "
          "others are elsewhere",
          chain.loops.back()->var);
    }
    s = body_of(s);
  }
  chain.body = s;
  return chain;
}

std::vector<LoopRef> new_order(const Chain& chain, const std::vector<std::string>& names) {
  std::vector<LoopRef> order = chain.loops;
  size_t next = 0;
  for (LoopRef& slot : order) {
    if (std::ranges::find(names, slot->var) == names.end()) continue;
    slot = *std::ranges::find_if(chain.loops,
                                 [&](const LoopRef& loop) { return loop->var == names[next]; });
    ++next;
  }
  return order;
}

Error check_order(const std::vector<LoopRef>& before, const std::vector<LoopRef>& after) {
  const auto place = [&](const LoopRef& loop) {
    return std::ranges::find(before, loop.stmt(), &LoopRef::stmt);
  };
  for (size_t i = 0; i < after.size(); ++i) {
    for (size_t j = i + 1; j < after.size(); ++j) {
      const bool swapped = place(after[i]) > place(after[j]);
      if (swapped && (after[i]->role == AxisRole::scan || after[j]->role == AxisRole::scan))
        return illegal(
            "loops '{0}' and '{1}' may not change places: a scan runs in its given order",
            after[j]->var, after[i]->var);
      if (uses_var(after[i]->extent, after[j]->var))
        return illegal("the extent of loop '{0}' depends on '{1}'", after[i]->var, after[j]->var);
    }
  }
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Reorder& s) {
  if (s.loops.size() < 2) return illegal("reorder needs two loops or more");
  std::vector<Stmt> path;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    if (std::ranges::count(s.loops, s.loops[i]) > 1)
      return illegal("loop '{0}' is named twice", s.loops[i]);
    TW_ASSIGN(std::vector<Stmt> candidate, loop_path(kernel, s.loops[i]));
    if (path.empty() || candidate.size() < path.size()) path = std::move(candidate);
  }
  TW_ASSIGN(Chain chain, perfect_chain(path.back(), s.loops));
  const std::vector<LoopRef> order = new_order(chain, s.loops);
  TW_TRY(check_order(chain.loops, order));
  if (!std::ranges::equal(order, chain.loops, {}, &LoopRef::stmt, &LoopRef::stmt))
    for (const LoopRef& loop : chain.loops) {
      TW_TRY(check_no_tokens(kernel, *loop));
      TW_TRY(check_own_slots(kernel, *loop));
    }

  // An if stands right inside the innermost loop whose variable it uses.
  std::vector<std::vector<Expr>> inside(order.size() + 1);
  for (const Expr& condition : chain.conditions) {
    size_t depth = 0;
    for (size_t i = 0; i < order.size(); ++i)
      if (uses_var(condition, order[i]->var)) depth = i + 1;
    inside[depth].push_back(condition);
  }
  Stmt nest = chain.body;
  for (size_t i = order.size() + 1; i-- > 0;) {
    for (size_t c = inside[i].size(); c-- > 0;) nest = make_if(inside[i][c], std::move(nest));
    if (i > 0) nest = with_body(order[i - 1], std::move(nest));
  }
  return with_replaced(kernel, path, nest);
}

}  // namespace tw::sched
