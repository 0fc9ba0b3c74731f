// compute_inline t
//   for i in 8 { t: t[i] = x[i] * 2 }          for j in 8 { y: y[j] = max(0, x[j] * 2) }
//   for j in 8 { y: y[j] = max(0, t[j]) }  ->
//
// Puts t's value in place of its loads, with a cast where t's dtype differs, and removes t's buffer
// from the kernel. Legal: t is a temp that no other stage writes. Its nest is as lowered, without
// combiner or where. No later statement changes what t reads. In a scan loop, all that reads t
// stands behind it in the same iteration.
#include "ir/schedule/nest.h"

namespace tw::sched {

Kernel without_buffer(const Kernel& kernel, BufferId gone) {
  Kernel out = kernel;
  out.buffers.erase(out.buffers.begin() + gone.index);
  const auto moved = [&](BufferId id) {
    return BufferId{id.index - (id.index > gone.index ? 1 : 0)};
  };
  out.body = rewrite_exprs(kernel.body, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      const auto* read = as<expr::Load>(e);
      return read ? load(moved(read->buffer), e->type, read->indices) : Expr();
    });
  });
  const auto access = [&](auto kind) {
    if (kind.buffer == gone) return make_sequence({});  // a prefetch of it
    kind.buffer = moved(kind.buffer);
    return make_stmt(std::move(kind));
  };
  out.body = rewrite(out.body, [&](const Stmt& s) -> Stmt {
    if (const auto* store = as<stmt::Store>(s)) return access(*store);
    if (const auto* prefetch = as<stmt::Prefetch>(s)) return access(*prefetch);
    return nullptr;
  });
  return out;
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeInline& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  const stmt::Store& store = *stage.store;
  const Buffer& buffer = kernel.buffer(store.buffer);
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}', which must be stored", s.stage,
                   buffer.name);
  if (store.combiner != Combiner::none || !stage.reduce.empty())
    return illegal("stage '{0}' combines several values: it cannot be inlined", s.stage);
  if (store.where.defined())
    return illegal("stage '{0}' has a where: it cannot be inlined", s.stage);
  TW_TRY(check_movable(kernel, stage));
  if (!stage.around.empty() && !read_behind_only(kernel, stage))
    return illegal("'{0}' is read in other iterations of the loops around stage '{1}'", buffer.name,
                   s.stage);

  const Expr typed = store.value.type() == buffer.dtype ? store.value
                                                        : cast(buffer.dtype, store.value);
  const auto inlined = [&](const expr::Load& read) {
    Expr value = typed;
    for (size_t dim = 0; dim < read.indices.size(); ++dim)
      if (stage.loop_of_dim[dim] >= 0)
        value = substitute(value, stage.spatial[static_cast<size_t>(stage.loop_of_dim[dim])]->var,
                           read.indices[dim]);
    return value;
  };
  Kernel out = kernel;
  out.body = replace(kernel.body, stage.nest, nullptr);
  if (!reads(out.body, store.buffer)) return illegal("nothing reads '{0}'", buffer.name);
  out.body = rewrite_exprs(out.body, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      const auto* read = as<expr::Load>(e);
      return read && read->buffer == store.buffer ? inlined(*read) : Expr();
    });
  });
  out.body = simplify_tree(out.body, ranges_of(kernel, {}));
  return without_buffer(out, store.buffer);
}

}  // namespace tw::sched
