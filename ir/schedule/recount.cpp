// recount c left 0 -> e constant                temp e: i32[10] constant
//                                               for e_j in 10 { for e_k in 4 reduce {
//                                                 e: e[e_j] += i32(w[e_k, e_j]) * 7 init 0
//                                               } }
//   for i in 8 { for j in 10 {                  for i in 8 { for j in 10 {
//     for k in 4 reduce {                         for k in 4 reduce {
//       c: c[i, j] += (i32(x[i, k]) - 7)    ->      c: c[i, j] += i32(x[i, k])
//                     * i32(w[k, j])                              * i32(w[k, j])
//     }                                           }
//   } }                                         } }
//   y: y[i, j] = f32(c[i, j])                   y: y[i, j] = f32(c[i, j] - e[j])
//
// The factor counts from another zero, which instructions may want. The sums are then too large by
// the difference of the zeros times the sum of the other factor: the new stage, which all readers
// subtract. Integers wrap, so this is exact. Legal: sums of integers without a condition, as
// lowered, into a temp. The factor is a value less a constant, or a value. The other factor depends
// on all reduce loops.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// A factor as `value - zero`
struct Counted {
  Expr value;
  int64_t zero = 0;
};

Counted counted(const Expr& factor) {
  const auto* difference = as_binary(factor, BinaryOp::sub);
  if (difference && as_const(difference->b)) return {difference->a, *as_const(difference->b)};
  return {factor};
}

Expr less(const Expr& value, int64_t zero) {
  return zero == 0 ? value : value - int_imm(zero, value.type());
}

Error check_sums(const Kernel& kernel, const LoweredStage& stage, const std::string& label) {
  const stmt::Store& store = *stage.store;
  const Buffer& buffer = kernel.buffer(store.buffer);
  if (store.combiner != Combiner::add || !is_int(buffer.dtype) || store.where.defined() ||
      buffer.role != BufferRole::temp)
    return illegal("stage '{0}' does not sum integers into a temp, all of them", label);
  for (const StoreRef& other : stores_of(kernel.body))
    if (other->label != label && other->buffer == store.buffer)
      return illegal("stage '{0}' writes '{1}' too", other->label, buffer.name);
  return Error::success();
}

// The new stage: the sums of the other factor, times the difference of the zeros
struct Excess {
  std::vector<LoopRef> around;  // the stage's loops on which the other factor depends
  std::vector<size_t> dims;     // by spatial loop: the dimension of the stage's buffer
};

Expected<Excess> excess_of(const LoweredStage& stage, const Expr& other, const std::string& label) {
  Excess excess;
  for (size_t dim = 0; dim < stage.loop_of_dim.size(); ++dim) {
    if (stage.loop_of_dim[dim] < 0) continue;
    const LoopRef& loop = stage.spatial[static_cast<size_t>(stage.loop_of_dim[dim])];
    if (!uses_var(other, loop->var)) continue;
    excess.dims.push_back(dim);
    excess.around.push_back(loop);
  }
  for (const LoopRef& loop : stage.reduce) {
    const bool used = uses_var(other, loop->var);
    if (used) excess.around.push_back(loop);
    else if (!is_const(loop->extent, 1))
      return illegal("the other factor of stage '{0}' does not depend on loop '{1}'", label,
                     loop->var);
  }
  return excess;
}

Stmt excess_nest(const Excess& excess, const std::string& name, BufferId buffer, Expr sum) {
  std::vector<Expr> at;
  for (const LoopRef& loop : excess.around) {
    const Expr own = var(axis_name(name, loop->var));
    sum = substitute(sum, loop->var, own);
    if (loop->role == AxisRole::spatial) at.push_back(own);
  }
  const Expr zero = imm(0, sum.type());
  Stmt nest = make_store({.label = name,
                          .buffer = buffer,
                          .indices = std::move(at),
                          .value = std::move(sum),
                          .combiner = Combiner::add,
                          .init = zero});
  for (auto loop = excess.around.rbegin(); loop != excess.around.rend(); ++loop)
    nest = make_loop(axis_name(name, (*loop)->var), (*loop)->extent, nest, LoopKind::serial,
                     (*loop)->role);
  return nest;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Recount& s) {
  TW_TRY(check_new_stage(kernel, s.name));
  TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, s.stage));
  TW_TRY(check_sums(kernel, stage, s.stage));
  const stmt::Store& store = *stage.store;
  const Factor side = s.factor == Factor::left ? Factor::right : Factor::left;
  const Expr factor = factor_of(store.value, s.factor), other = factor_of(store.value, side);
  if (!factor.defined()) return illegal("the value of stage '{0}' is not a product", s.stage);
  const Counted now = counted(factor);
  const auto beyond = [](int64_t zero) {
    return zero < -kMostStepNumber || zero > kMostStepNumber;
  };
  if (beyond(now.zero)) return illegal("the zeros {0} and {1} are too far apart", now.zero, s.zero);
  if (now.zero == s.zero) return illegal("the factor counts from {0} already", s.zero);
  TW_ASSIGN(const Excess excess, excess_of(stage, other, s.stage));
  for (const LoopRef& loop : excess.around)
    TW_TRY(check_new_loop(kernel, axis_name(s.name, loop->var)));

  Kernel out = kernel;
  const DType type = factor.type();
  const BufferId buffer{static_cast<int32_t>(kernel.buffers.size())};
  out.buffers.push_back({s.name, type, {}, BufferRole::temp, s.scope});
  for (const LoopRef& loop : excess.around)
    if (loop->role == AxisRole::spatial) out.buffers.back().shape.push_back(loop->extent);
  const Stmt nest = excess_nest(excess, s.name, buffer, other * int_imm(now.zero - s.zero, type));

  stmt::Store recounted = store;
  recounted.value = with_factor(store.value, s.factor, less(now.value, s.zero));
  const Stmt sums = replace(stage.nest, stage.store, make_store(std::move(recounted)));
  out.body = replace(kernel.body, stage.nest, make_sequence({nest, sums}));
  out.body = rewrite_exprs(out.body, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      const auto* read = as<expr::Load>(e);
      if (!read || read->buffer != store.buffer) return Expr();
      std::vector<Expr> place;
      for (const size_t dim : excess.dims) place.push_back(read->indices[dim]);
      return e - load(buffer, type, std::move(place));
    });
  });
  out.body = simplify_tree(out.body, ranges_of(out, {}));
  return out;
}

}  // namespace tw::sched
