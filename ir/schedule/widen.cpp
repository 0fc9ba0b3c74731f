// widen s i j 4 8 max
//   for i in 16 { for j in 16 {                 for i in 16 { for j in 16 {
//     s: s[i, j] = x[i, j] where j <= i   ->      s: s[i, j] = select(j <= i, x[i, j], -inf)
//                                                          where j // 8 * 8 <= i // 4 * 4 + 3
//   } }                                         } }
//
// widen t i j 4 8
//   for i in 16 { for j in 16 reduce {          for i in 16 { for j in 16 reduce {
//     t: t[i] max= s[i, j]                ->      t: t[i] max= s[i, j]
//          where j <= i init -inf                      where j // 8 * 8 <= i // 4 * 4 + 3 init -inf
//   } }                                         } }
//
// Conditions become those of whole tiles: they hold for all points of a tile in which they held for
// one. Each is a comparison, where a loop that makes it true by growing takes the last value in its
// part, and the other loops the first. At the added points a temp holds what counts for nothing in
// the combiner, and sums add it.
//
// Legal: the stage is as lowered, and each of its conditions on the loops is a comparison that is
// linear in them. A stage that sets its temp, or combines in it from an init on, has readers that
// ask for the condition too. A sum over one of the loops adds nothing at the points beyond. As with
// `unguard`, sums of floats stay equal where the other factor is finite.
#include <algorithm>

#include "ir/kernel/bounds.h"
#include "ir/kernel/guards.h"
#include "ir/schedule/filling.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

const expr::Binary* comparison(const Expr& e) {
  const auto* both = as<expr::Binary>(e);
  return both && (both->op == BinaryOp::lt || both->op == BinaryOp::le) ? both : nullptr;
}

std::string text_of(const Kernel& kernel, const Expr& e) {
  return to_string(e, [&](BufferId id) { return kernel.buffer(id).name; });
}

bool uses_any(const Expr& e, const std::vector<std::string>& loops) {
  return std::ranges::any_of(loops, [&](const std::string& l) { return uses_var(e, l); });
}

// The comparison of whole parts of the loops
Expected<Expr> widened(const Kernel& kernel, const Expr& condition, const step::Widen& s) {
  const auto* both = comparison(condition);
  if (!both) return illegal("'{0}' is no comparison by < or <=", text_of(kernel, condition));
  Expr a = both->a, b = both->b;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    const std::optional<LinearTerm> term = linear_in(b - a, s.loops[i]);
    if (!term)
      return illegal("'{0}' is not linear in '{1}'", text_of(kernel, condition), s.loops[i]);
    const Expr first = floor_div(var(s.loops[i]), Expr(s.factors[i])) * Expr(s.factors[i]),
               at = term->coefficient > 0 ? first + Expr(s.factors[i] - 1) : first;
    a = substitute(a, s.loops[i], at), b = substitute(b, s.loops[i], at);
  }
  return binary(both->op, a, b);
}

// Requires that the store, as far as its value reads the stage's buffer, has the condition too.
Error check_reader(const Kernel& kernel, const LoweredStage& stage, const Expr& condition,
                   const StoreRef& reader) {
  const BufferId buffer = stage.store->buffer;
  const Ranges ranges = ranges_of(kernel, find_path(kernel.body, reader));
  Expr missing;
  visit(reader->value, [&](const Expr& e) {
    const auto* read = as<expr::Load>(e);
    if (!read || read->buffer != buffer) return;
    const Expr asked = at_place(condition, *stage.store, read->indices);
    if (!asks_for(reader->where, asked, ranges)) missing = simplify(asked, ranges);
  });
  if (!missing.defined()) return Error::success();
  return illegal("stage '{0}' reads '{1}' where '{2}' may not hold", reader->label,
                 kernel.buffer(buffer).name, text_of(kernel, missing));
}

// Requires that what reads the stage's buffer has the condition too.
Error check_readers(const Kernel& kernel, const LoweredStage& stage, const Expr& condition) {
  const BufferId buffer = stage.store->buffer;
  const bool elsewhere = contains(kernel.body, [&](const StmtNode& s) {
    bool found = false;
    const auto* store = as<stmt::Store>(s);
    visit_exprs(s, [&](const Expr& e) {
      found |= reads(e, buffer) && !(store && e.get() == store->value.get());
    });
    return found;
  });
  if (elsewhere)
    return illegal("'{0}' is read outside of the values of stages", kernel.buffer(buffer).name);
  for (const StoreRef& store : stores_of(kernel.body))
    TW_TRY(check_reader(kernel, stage, condition, store));
  return Error::success();
}

bool sums_over(const LoweredStage& stage, const Expr& condition) {
  return std::ranges::any_of(stage.reduce,
                             [&](const LoopRef& loop) { return uses_var(condition, loop->var); });
}

// Requires that nothing changes where the condition does not hold. made: the store with its new
// conditions.
Error check_condition(const Kernel& kernel, const LoweredStage& stage, const stmt::Store& made,
                      const Ranges& ranges, const Expr& condition) {
  if (!sums_over(stage, condition)) {
    if (kernel.buffer(made.buffer).role != BufferRole::temp)
      return illegal("stage '{0}' writes a parameter", made.label);
    return check_readers(kernel, stage, condition);
  }
  const auto fails = [&](const Expr& filled) { return asks_for(filled, condition, ranges); };
  if (adds_nothing(kernel, made, ranges, fails, true)) return Error::success();
  return illegal("it cannot be shown that stage '{0}' combines nothing where '{1}' does not hold",
                 made.label, text_of(kernel, condition));
}

Error check_loops(const step::Widen& s, const LoweredStage& stage) {
  if (s.loops.empty()) return illegal("no loop is named");
  if (s.loops.size() != s.factors.size())
    return illegal("there are {0} loops and {1} factors", s.loops.size(), s.factors.size());
  std::vector<LoopRef> all = stage.spatial;
  all.insert(all.end(), stage.reduce.begin(), stage.reduce.end());
  for (size_t i = 0; i < s.loops.size(); ++i) {
    const auto is_named = [&](const LoopRef& loop) { return loop->var == s.loops[i]; };
    if (std::ranges::none_of(all, is_named))
      return illegal("'{0}' is no loop of stage '{1}': {2}", s.loops[i], s.stage, it_has(all));
    if (std::ranges::count(s.loops, s.loops[i]) > 1)
      return illegal("loop '{0}' is named twice", s.loops[i]);
    if (s.factors[i] < 1)
      return illegal("the factor {0} for loop '{1}' is not positive", s.factors[i], s.loops[i]);
  }
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Widen& s) {
  TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, s.stage));
  TW_TRY(check_loops(s, stage));
  stmt::Store store = *stage.store;
  if (store.combiner != Combiner::none && !store.init.defined())
    return illegal("stage '{0}' adds to what another stage has stored", s.stage);
  if (store.combiner != Combiner::none && s.combiner != Combiner::add)
    return illegal("stage '{0}' combines: {1} is for stages that set a temp", s.stage,
                   combiner_name(s.combiner));
  TW_TRY(check_movable(kernel, stage));
  TW_ASSIGN(const std::vector<Stmt> path, stage_path(kernel, s.stage));
  const Ranges ranges = ranges_of(kernel, path);
  std::vector<Expr> conditions, asked, filled_in;
  for (const Expr& condition : conjuncts(store.where)) {
    const bool changes = uses_any(condition, s.loops);
    Expr whole = condition;
    if (changes) { TW_ASSIGN(whole, widened(kernel, condition, s)); }
    conditions.push_back(simplify(whole, ranges));
    if (changes) asked.push_back(condition);
  }
  if (asked.empty()) return illegal("stage '{0}' has no condition on these loops", s.stage);
  store.where = conjunction(conditions);
  for (const Expr& condition : asked) {
    TW_TRY(check_condition(kernel, stage, store, ranges, condition));
    if (!sums_over(stage, condition)) filled_in.push_back(condition);
  }
  if (store.combiner != Combiner::none && !reads_written(kernel, store.value, store.where, ranges))
    return illegal("stage '{0}' reads what is not written at the added points", s.stage);
  if (store.combiner == Combiner::none)
    store.value = filled(conjunction(filled_in), store.value,
                         identity_of(s.combiner, store.value.type()), ranges);
  const Stmt whole = make_store(std::move(store));
  Kernel alone = kernel;
  alone.body = replace(stage.nest, path.back(), whole);
  if (Error error = check_bounds(alone, Tables::ours))
    return illegal("not all loads exist at the added points: {0}", error_text(std::move(error)));
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), whole);
  return out;
}

}  // namespace tw::sched
