// decompose_reduction c k
//   for k in 64 reduce {                              for i_init in 4 unroll {
//     for i in 4 unroll { for j in 16 vector {          for j_init in 16 vector {
//       c: c[i, j] += a[i, k] * b[k, j] init 0   ->       c.init: c[i_init, j_init] = 0
//     } }                                             } }
//   }                                                 for k in 64 reduce {
//                                                       for i in 4 unroll { for j in 16 vector {
//                                                         c: c[i, j] += a[i, k] * b[k, j]
//                                                       } }
//                                                     }
//
// Legal: c has an init. No reduce loop of c is outside k. Every spatial loop of c from k on is an
// index of its store; otherwise the init would run for one iteration only. Iterations of k exchange
// no tokens with other loops.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

Stmt init_nest(std::span<const Stmt> path) {
  stmt::Store store = get<stmt::Store>(path.back());
  store.label = init_label(store.label);
  store.value = store.init;
  store.init = store.where = Expr();
  store.combiner = Combiner::none;
  Stmt nest = make_store(std::move(store));
  for (size_t i = path.size() - 1; i-- > 0;) {
    if (const auto* guard = as<stmt::If>(path[i])) nest = make_if(guard->condition, nest);
    const auto* loop = as<stmt::Loop>(path[i]);
    if (!loop || loop->role == AxisRole::reduce) continue;
    const std::string name = init_name(loop->var);
    nest = make_loop(name, loop->extent, substitute(nest, loop->var, var(name)), loop->kind,
                     loop->role);
  }
  return nest;
}

Stmt without_init(const stmt::Store& store) {
  stmt::Store out = store;
  out.init = Expr();
  return make_store(std::move(out));
}

// True: the loop's variable only counts the slots of a ring, and the ring has fewer slots than the
// loop has iterations.
static bool in_slots(const stmt::Store& store, const stmt::Loop& loop) {
  bool slots = false;
  for (const Expr& index : store.indices) {
    if (!uses_var(index, loop.var)) continue;
    const auto* slot = as_binary(index, BinaryOp::floor_mod);
    if (!slot || (as_const(loop.extent) && as_const(slot->b) &&
                  *as_const(loop.extent) <= *as_const(slot->b)))
      return false;
    slots = true;
  }
  return slots;
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::DecomposeReduction& s) {
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, s.stage));
  const auto& store = get<stmt::Store>(path.back());
  if (!store.init.defined()) return illegal("stage '{0}' has no init to decompose", s.stage);
  const auto at = std::ranges::find_if(path, [&](const Stmt& around) {
    const auto* loop = as<stmt::Loop>(around);
    return loop && loop->var == s.loop;
  });
  if (at == path.end()) {
    std::vector<LoopRef> around;
    for (const Stmt& one : path)
      if (is<stmt::Loop>(one)) around.emplace_back(one);
    return illegal("stage '{0}' is not in a loop '{1}': {2}", s.stage, s.loop, it_has(around));
  }
  for (auto it = path.begin(); it != at; ++it)
    if (const auto* outer = as<stmt::Loop>(*it); outer && outer->role == AxisRole::reduce)
      return illegal(
          "the reduce loop '{0}' is outside of loop '{1}': the init would run in each of its "
          "iterations",
          outer->var, s.loop);
  // The init would run before the first of the loop's waits.
  TW_TRY(check_no_tokens(kernel, get<stmt::Loop>(*at)));
  std::vector<std::string> reduced;
  for (auto it = at; it + 1 != path.end(); ++it) {
    const auto* inner = as<stmt::Loop>(*it);
    if (const auto* guard = as<stmt::If>(*it)) {
      for (const std::string& var : reduced)
        if (uses_var(guard->condition, var))
          return illegal("the condition around stage '{0}' depends on the reduce loop '{1}'",
                         s.stage, var);
      if (has_load(guard->condition))
        return illegal("the condition around stage '{0}' reads a buffer", s.stage);
    } else if (inner && inner->role == AxisRole::reduce) {
      reduced.push_back(inner->var);
    } else {
      const std::string name = inner ? inner->var : "";  // a block and roles have no variable
      const bool index = inner && std::ranges::any_of(store.indices, [&](const Expr& e) {
                           return uses_var(e, name);
                         });
      if (index && in_slots(store, *inner))
        return illegal(
            "iterations of loop '{0}' share the slots of stage '{1}': the init must stay "
            "inside it",
            name, s.stage);
      if (!inner || inner->role == AxisRole::scan || (!index && !is_const(inner->extent, 1)))
        return illegal("loop '{0}' is no index of stage '{1}': the init must stay inside it", name,
                       s.stage);
      TW_TRY(check_new_loop(kernel, init_name(name)));
    }
  }
  TW_TRY(check_new_stage(kernel, init_label(s.stage)));

  const std::vector<Stmt> loop_path(path.begin(), at + 1);
  const Stmt update = replace(*at, path.back(), without_init(store));
  return with_replaced(kernel, loop_path, make_sequence({init_nest({at, path.end()}), update}));
}

}  // namespace tw::sched
