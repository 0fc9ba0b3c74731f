// cache_write y -> yc register
//   for i in 8 { for k in 4 reduce {          for i in 8 { for k in 4 reduce {
//     y: y[i] += a[i, k] init 0         ->      yc: yc[i] += a[i, k] init 0
//   } }                                       } }
//                                             for y_i in 8 { y: y[y_i] = yc[y_i] }
//
// The stage gets the new name and computes into a new temp of that name, with the old buffer's
// shape. Stage y becomes a copy. Legal: the nest is as lowered (also at the top of scan loops). No
// other stage writes the buffer, and the stage does not read it. It stores at all of its points.
#include "ir/schedule/nest.h"

namespace tw::sched {

Expected<Kernel> apply_step(const Kernel& kernel, const step::CacheWrite& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  TW_TRY(check_new_stage(kernel, s.name));
  TW_TRY(check_alone(kernel, stage));
  if (stage.store->combiner == Combiner::none && stage.store->where.defined())
    return illegal("stage '{0}' has a where: a copy would store what it leaves out", s.stage);
  const BufferId old = stage.store->buffer, cached{static_cast<int32_t>(kernel.buffers.size())};
  Kernel out = kernel;
  Buffer buffer = kernel.buffer(old);
  buffer.name = s.name;
  buffer.role = BufferRole::temp;
  buffer.scope = s.scope;
  out.buffers.push_back(buffer);

  stmt::Store compute = *stage.store;
  compute.label = s.name;
  compute.buffer = cached;
  const auto copy_var = [&](const LoopRef& loop) { return s.stage + "_" + loop->var; };
  std::vector<Expr> at;
  for (const int axis : stage.loop_of_dim)
    at.push_back(axis < 0 ? Expr(0) : var(copy_var(stage.spatial[static_cast<size_t>(axis)])));
  Stmt copy_nest = make_store(
      {.label = s.stage, .buffer = old, .indices = at, .value = load(cached, buffer.dtype, at)});
  for (size_t i = stage.spatial.size(); i-- > 0;) {
    TW_TRY(check_new_loop(kernel, copy_var(stage.spatial[i])));
    copy_nest = make_loop(copy_var(stage.spatial[i]), stage.spatial[i]->extent,
                          std::move(copy_nest));
  }
  const Stmt compute_nest = replace(stage.nest, stage.store, make_store(std::move(compute)));
  out.body = replace(kernel.body, stage.nest, make_sequence({compute_nest, copy_nest}));
  return out;
}

}  // namespace tw::sched
