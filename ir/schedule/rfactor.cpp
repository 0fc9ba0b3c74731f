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
//
// rfactor c k -> cf
//   for i in 8 { z: c[i] = 0 }                   for i in 8 { for z_k in 4 { z: cf[i, z_k] = 0 } }
//   for t in 9 scan {                            for t in 9 scan {
//     for j in 8 { f: c[j] *= w[t, j] }            for j in 8 { for f_k in 4 {
//     for l in 8 { for k in 4 reduce {      ->       f: cf[j, f_k] *= w[t, j]
//       c: c[l] += x[t, l, k]                      } }
//     } }                                          for l in 8 { for k in 4 {
//   }                                                cf: cf[l, k] += x[t, l, k]
//                                                } } }
//                                                for c_l in 8 { for c_k in 4 reduce {
//                                                  c: c[c_l] += cf[c_l, c_k] init 0
//                                                } }
//
// Without an init, a result is kept over several runs of the nest. Each part then goes through all
// that happens to it, and they are combined behind the last stage that writes the buffer. Legal:
// all of these stages are as lowered and have the same extents. The others set the identity, or
// scale a sum. Only code behind them reads the buffer, inside of the loops around all of them.
//
// Sums of floats are regrouped, so they round in another order. A part may overflow where the
// serial sum does not, or the other way round: one result is then infinite, or NaN. A scale that is
// infinite makes NaN of a part that is 0, where it makes the serial sum infinite.
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
  if (store.init.defined()) store.init = identity_of(store.combiner, store.value.type());
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

// The nest that combines the partial results. init: where it begins
Expected<Stmt> total_nest(const Kernel& kernel, const step::RFactor& s, const LoweredStage& stage,
                          const LoopRef& factored, BufferId partial, const Expr& init) {
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
  total.init = renamed(init);
  total.where = Expr();
  std::vector<Expr> at = total.indices;
  at.push_back(var(name_of(factored)));
  total.value = operand(*stage.store,
                        load(partial, kernel.buffer(total.buffer).dtype, std::move(at)));
  Stmt nest = make_store(std::move(total));
  for (size_t i = loops.size(); i-- > 0;) {
    TW_TRY(check_new_loop(kernel, name_of(loops[i])));
    nest = make_loop(name_of(loops[i]), loops[i]->extent, std::move(nest), LoopKind::serial,
                     loops[i]->role);
  }
  return nest;
}

// The stages of a result that is kept over several runs of the nest
class RunningResult {
 public:
  RunningResult(const Kernel& kernel, const LoweredStage& stage)
      : kernel_(kernel), stage_(stage), id_(stage.store->buffer) {}

  // Finds the other stages that write the buffer, and the statement behind which they are done.
  Error read() {
    std::vector<Stmt> common = find_path(kernel_.body, stage_.store);
    if (reads(stage_.nest, id_))
      return illegal("stage '{0}' reads its own buffer", stage_.store->label);
    for (const StoreRef& store : stores_of(kernel_.body)) {
      if (store->buffer != id_ || store.stmt() == stage_.store.stmt()) continue;
      TW_ASSIGN(LoweredStage other, lowered_stage(kernel_, store->label, true));
      TW_TRY(check_follows(other));
      const std::vector<Stmt> path = find_path(kernel_.body, store);
      common.erase(std::ranges::mismatch(common, path).in1, common.end());
      others_.push_back(std::move(other));
    }
    if (others_.empty())
      return illegal("stage '{0}' combines nothing from an init on", stage_.store->label);
    const Stmt& around = common.empty() ? kernel_.body : children(common.back())[0];
    for (const Stmt& s : statements(around))
      if (writes(s, id_)) last_ = s;
    Stmt rest = common.empty() ? make_sequence({}) : replace(kernel_.body, common.back(), nullptr);
    bool early = reads(rest, id_), behind = false;
    for (const Stmt& s : statements(around)) {
      early |= !behind && reads(s, id_);
      behind |= s == last_;
    }
    return early
               ? illegal("'{0}' is read where its parts are not complete", kernel_.buffer(id_).name)
               : Error::success();
  }

  // Lets all of them have parts, which the total combines behind them.
  Expected<Kernel> with_parts(Kernel out, const step::RFactor& s, const LoopRef& factored,
                              BufferId partial, const Stmt& total) const {
    Stmt last = replace(last_, stage_.nest, partial_nest(stage_, factored, partial, s.name));
    Stmt body = kernel_.body;
    std::vector<std::pair<Stmt, Stmt>> nests;
    for (const LoweredStage& other : others_) {
      const std::string part = axis_name(other.store->label, factored->var);
      TW_TRY(check_new_loop(out, part));
      stmt::Store store = *other.store;
      store.buffer = partial;
      store.indices.push_back(var(part));
      const Stmt nest = make_loop(part, factored->extent, make_store(std::move(store)));
      nests.emplace_back(other.nest, replace(other.nest, other.store, nest));
    }
    for (const auto& [before, after] : nests) last = replace(last, before, after);
    body = replace(body, last_, make_sequence({last, total}));
    for (const auto& [before, after] : nests) body = replace(body, before, after);
    out.body = body;
    return out;
  }

 private:
  Error check_follows(const LoweredStage& other) const {
    const stmt::Store &store = *other.store, &sum = *stage_.store;
    const bool scales = store.combiner == Combiner::mul && sum.combiner == Combiner::add,
               begins = store.combiner == Combiner::none &&
                        equal(store.value, identity_of(sum.combiner, sum.value.type()));
    if (!(scales || begins) || store.init.defined() || !other.reduce.empty() ||
        reads(other.nest, id_))
      return illegal("parts of '{0}' cannot follow what stage '{1}' does with it",
                     kernel_.buffer(id_).name, store.label);
    for (size_t d = 0; d < store.indices.size(); ++d)
      if (!equal(other.extent_of_dim(d), stage_.extent_of_dim(d)))
        return illegal("stages '{0}' and '{1}' write different parts of '{2}'", store.label,
                       sum.label, kernel_.buffer(id_).name);
    return Error::success();
  }

  const Kernel& kernel_;
  const LoweredStage& stage_;
  BufferId id_;
  std::vector<LoweredStage> others_;
  Stmt last_;
};

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::RFactor& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  const auto found = std::ranges::find_if(stage.reduce,
                                          [&](const LoopRef& loop) { return loop->var == s.loop; });
  if (found == stage.reduce.end())
    return illegal("'{0}' is no reduce loop of stage '{1}': {2}", s.loop, s.stage,
                   it_has(stage.reduce));
  TW_TRY(check_new_stage(kernel, s.name));
  const LoopRef& factored = *found;
  const BufferId partial{static_cast<int32_t>(kernel.buffers.size())};
  Kernel out = kernel;
  Buffer buffer = kernel.buffer(stage.store->buffer);
  buffer.name = s.name;
  buffer.role = BufferRole::temp;
  buffer.scope = "global";
  buffer.shape.push_back(factored->extent);
  out.buffers.push_back(buffer);

  const Expr init = stage.store->init;
  RunningResult running(kernel, stage);
  if (init.defined()) TW_TRY(check_alone(kernel, stage));
  else TW_TRY(running.read());
  TW_ASSIGN(const Stmt total, total_nest(kernel, s, stage, factored, partial,
                                         init.defined() ? init
                                                        : identity_of(stage.store->combiner,
                                                                      stage.store->value.type())));
  if (!init.defined()) return running.with_parts(std::move(out), s, factored, partial, total);
  out.body = replace(kernel.body, stage.nest,
                     make_sequence({partial_nest(stage, factored, partial, s.name), total}));
  return out;
}

}  // namespace tw::sched
