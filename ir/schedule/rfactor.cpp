// rfactor c k1 -> cf
//   for i in 8 {                                        for i in 8 { for k1 in 16 {
//     for k0 in 4 reduce { for k1 in 16 reduce {          for k0 in 4 reduce {
//       c: c[i] += x[i, k0*16+k1] init 2           ->       cf: cf[i, k1] += x[i, k0*16+k1] init 0
//   } } }                                               } } }
//                                                       for c_i in 8 { for c_k1 in 16 reduce {
//                                                         c: c[c_i] += cf[c_i, c_k1] init 2
//                                                       } }
//
// Stage c is renamed to cf and computes a partial result for each k1, in a new temp whose last
// dimension is k1. A new stage c combines them. The loop k1 of the partial stage is spatial, so it
// can be vectorized or run in parallel. Legal: the nest is as lowered, though its reduce loops may
// be split. c has an init, and no other stage writes its buffer. k1 is one of its reduce loops.
#include <algorithm>

#include "ir/schedule/filling.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

Stmt partial_nest(const LoweredStage& stage, const LoopRef& factored, BufferId partial,
                  const std::string& name) {
  stmt::Store store = *stage.store;
  store.label = name;
  store.buffer = partial;
  store.indices.push_back(var(factored->var));
  store.init = identity_of(store.combiner, store.value.type());
  Stmt nest = make_store(std::move(store));
  for (size_t i = stage.reduce.size(); i-- > 0;)
    if (stage.reduce[i].stmt() != factored.stmt())
      nest = with_body(stage.reduce[i], std::move(nest));
  nest = make_loop(factored->var, factored->extent, std::move(nest));
  for (size_t i = stage.spatial.size(); i-- > 0;)
    nest = with_body(stage.spatial[i], std::move(nest));
  return nest;
}

// A partial result as an operand of the total. Where NaN counts as nothing, so it does there: the
// operand is none, but takes fewer instructions than one that may be.
Expr operand(const stmt::Store& store, const Expr& partial) {
  const auto* choice = as<expr::Select>(store.value);
  const auto* test = choice ? as_unary(choice->condition, UnaryOp::is_nan) : nullptr;
  const bool drops_nan = test && equal(test->a, choice->otherwise) &&
                         equal(choice->then, identity_of(store.combiner, store.value.type()));
  return drops_nan ? select(unary(UnaryOp::is_nan, partial), choice->then, partial) : partial;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::RFactor& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  if (!stage.store->init.defined())
    return illegal("stage '{0}' combines nothing from an init on", s.stage);
  const auto found = std::ranges::find_if(stage.reduce,
                                          [&](const LoopRef& loop) { return loop->var == s.loop; });
  if (found == stage.reduce.end())
    return illegal("'{0}' is no reduce loop of stage '{1}'", s.loop, s.stage);
  TW_TRY(check_new_stage(kernel, s.name));
  TW_TRY(check_movable(kernel, stage));
  const LoopRef& factored = *found;
  const BufferId partial{static_cast<int32_t>(kernel.buffers.size())};
  Kernel out = kernel;
  Buffer buffer = kernel.buffer(stage.store->buffer);
  buffer.name = s.name;
  buffer.role = BufferRole::temp;
  buffer.scope = "global";
  buffer.shape.push_back(factored->extent);
  out.buffers.push_back(buffer);

  stmt::Store total = *stage.store;
  std::vector<LoopRef> loops = stage.spatial;
  // The partial stage keeps its loops' names, so these get the prefix even where those have it.
  const auto name_of = [&](const LoopRef& loop) { return s.stage + "_" + loop->var; };
  loops.push_back(factored);
  const auto renamed = [&](Expr e) {
    for (const LoopRef& loop : loops) e = substitute(e, loop->var, var(name_of(loop)));
    return e;
  };
  for (Expr& index : total.indices) index = renamed(index);
  total.init = renamed(total.init);
  total.where = Expr();
  std::vector<Expr> at = total.indices;
  at.push_back(var(name_of(factored)));
  total.value = operand(*stage.store, load(partial, buffer.dtype, std::move(at)));
  Stmt nest = make_store(std::move(total));
  for (size_t i = loops.size(); i-- > 0;) {
    TW_TRY(check_new_loop(kernel, name_of(loops[i])));
    nest = make_loop(name_of(loops[i]), loops[i]->extent, std::move(nest), LoopKind::serial,
                     loops[i]->role);
  }
  out.body = replace(kernel.body, stage.nest,
                     make_sequence({partial_nest(stage, factored, partial, s.name), nest}));
  return out;
}

}  // namespace tw::sched
