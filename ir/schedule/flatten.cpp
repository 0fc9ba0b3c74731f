// flatten y -> f
//   x: in f32[4, 6], y: out f32[4, 6]       x: in f32[24], y: out f32[24]
//   for i in 4 { for j in 6 {         ->    for f in 24 {
//     y: y[i, j] = exp(x[i, j])               y: y[f] = exp(x[f])
//   } }                                     }
//
// Makes one loop of a stage's loops, and one dimension of each buffer that it reads or writes at
// their variables. Elements stay where they are in memory. Legal: the stage is as lowered and has
// no reduce loops. It uses its variables only as the indices, in order, of buffers of its own
// shape, which no other statement uses.
#include <algorithm>

#include "ir/kernel/accesses.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

bool all_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal(x, y); });
}

bool equal_shapes(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(
      a, b, [](const Expr& x, const Expr& y) { return is_const(simplify(x - y), 0); });
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Flatten& s) {
  TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, s.stage));
  const stmt::Store& store = *stage.store;
  for (size_t d = 0, last = 0; d < stage.loop_of_dim.size(); ++d) {
    const int axis = stage.loop_of_dim[d];
    if (axis >= 0 && static_cast<size_t>(axis) < last)
      return illegal("stage '{0}' stores in another order than that of its loops", s.stage);
    if (axis >= 0) last = static_cast<size_t>(axis) + 1;
  }
  if (!stage.reduce.empty() || store.where.defined() || store.combiner != Combiner::none)
    return illegal("stage '{0}' does not overwrite each element once", s.stage);
  const bool own_name = std::ranges::any_of(
      stage.spatial, [&](const LoopRef& loop) { return loop->var == s.loop; });
  if (!own_name) TW_TRY(check_new_loop(kernel, s.loop));

  std::vector<Expr> shape = kernel.buffer(store.buffer).shape;
  std::vector<bool> flat(kernel.buffers.size());
  flat[static_cast<size_t>(store.buffer.index)] = true;
  visit_loads(stage.nest, [&](const expr::Load& load, std::span<const Stmt>) {
    if (all_equal(load.indices, store.indices) &&
        equal_shapes(kernel.buffer(load.buffer).shape, shape))
      flat[static_cast<size_t>(load.buffer.index)] = true;
  });
  Expr count(1);
  for (const Expr& extent : shape) count = count * extent;
  count = simplify(count);
  constexpr const char* kPlace = "$place";  // no name, since the new loop may have an old one's
  bool apart = true;
  const Stmt body = rewrite_accesses(
      stage.store.stmt(),
      [&](BufferId buffer, const std::vector<Expr>& at) -> std::optional<BufferAccess> {
        if (!flat[static_cast<size_t>(buffer.index)]) return std::nullopt;
        apart &= all_equal(at, store.indices);
        return BufferAccess{buffer, {var(kPlace)}};
      });
  for (const Stmt& other : statements(kernel.body))
    for (size_t i = 0; i < flat.size() && other != stage.nest; ++i)
      if (const BufferId id{static_cast<int32_t>(i)}; flat[i])
        apart &= !reads(other, id) && !writes(other, id);
  if (!apart) return illegal("a buffer of stage '{0}' is used at other elements, too", s.stage);
  for (const LoopRef& loop : stage.spatial)
    if (uses_var(get<stmt::Store>(body).value, loop->var))
      return illegal("stage '{0}' uses '{1}' otherwise than as an index of a buffer of its shape",
                     s.stage, loop->var);
  Kernel out = kernel;
  for (size_t i = 0; i < flat.size(); ++i)
    if (flat[i]) out.buffers[i].shape = {count};
  out.body = replace(kernel.body, stage.nest,
                     make_loop(s.loop, count, substitute(body, kPlace, var(s.loop))));
  return out;
}

}  // namespace tw::sched
