// cache_read x c -> xc stack
//   for i in 8 { for k in 4 reduce {          for xc_0 in 8 { for xc_1 in 4 {
//     c: c[i] += x[i, k] init 0         ->      xc: xc[xc_0, xc_1] = x[xc_0, xc_1]
//   } }                                       } }
//                                             for i in 8 { for k in 4 reduce {
//                                               c: c[i] += xc[i, k] init 0
//                                             } }
//
// The copy is a stage of its own in front of the reader's nest, as far outside as nothing writes
// the buffer; compute_at makes it a tile. It has the condition under which one stage sets the
// buffer. Legal: the stage reads the buffer. This is a parameter that nothing writes, a temp of
// scope constant, or a temp whose stages are still as lowered, write the same extents, and are
// outside the reader's nest.
#include <algorithm>

#include "ir/schedule/filling.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// The points that hold values: the whole shape of an input or a constant, or the domain of a
// computed buffer's stages, where the condition of a single one holds
struct Written {
  std::vector<Expr> extents;
  StoreRef guarded = {};  // sets them where its condition holds; none: all points hold values
};
Expected<Written> written_points(const Kernel& kernel, BufferId buffer) {
  const std::string& name = kernel.buffer(buffer).name;
  std::vector<Written> all;
  for (const StoreRef& store : stores_of(kernel.body)) {
    if (store->buffer != buffer || kernel.buffer(buffer).scope == kConstantScope) continue;
    TW_ASSIGN(const LoweredStage stage, lowered_stage(kernel, store->label, true));
    Written& written = all.emplace_back();
    if (store->combiner == Combiner::none && store->where.defined()) written.guarded = store;
    for (size_t dim = 0; dim < stage.loop_of_dim.size(); ++dim)
      written.extents.push_back(stage.extent_of_dim(dim));
    if (!std::ranges::equal(all.front().extents, written.extents, equal))
      return illegal("'{0}' is written in several extents: it cannot be cached", name);
  }
  if (all.empty()) return Written{kernel.buffer(buffer).shape};
  if (all.size() > 1) all.front().guarded = StoreRef();
  return all.front();
}

// The outermost statement on the reader's path in which nothing writes the buffer
Expected<Stmt> place_of_copy(const Kernel& kernel, BufferId buffer, std::span<const Stmt> path) {
  const bool constant = kernel.buffer(buffer).scope == kConstantScope;
  for (size_t i = 0; i <= statements_around(path); ++i)
    if (constant || !writes(path[i], buffer)) return path[i];
  return illegal("'{0}' is written in the nest that reads it", kernel.buffer(buffer).name);
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::CacheRead& s) {
  TW_ASSIGN(const BufferId source, buffer_named(kernel, s.buffer));
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, s.stage));
  const Stmt& store = path.back();
  if (!reads(store, source)) return illegal("stage '{0}' does not read '{1}'", s.stage, s.buffer);
  TW_TRY(check_new_stage(kernel, s.name));
  TW_ASSIGN(const Stmt place, place_of_copy(kernel, source, path));
  TW_ASSIGN(const Written written, written_points(kernel, source));
  const std::vector<Expr>& extents = written.extents;

  Kernel out = kernel;
  const BufferId cached{static_cast<int32_t>(kernel.buffers.size())};
  Buffer buffer = kernel.buffer(source);
  buffer.name = s.name;
  buffer.role = BufferRole::temp;
  buffer.scope = s.scope;
  out.buffers.push_back(buffer);

  const auto copy_var = [&](size_t dim) { return axis_name(s.name, std::to_string(dim)); };
  std::vector<Expr> at;
  for (size_t dim = 0; dim < extents.size(); ++dim) at.push_back(var(copy_var(dim)));
  const Expr where = written.guarded ? at_place(written.guarded->where, *written.guarded, at)
                                     : Expr();
  Stmt nest = make_store({.label = s.name,
                          .buffer = cached,
                          .indices = at,
                          .value = load(source, buffer.dtype, at),
                          .where = where});
  for (size_t dim = extents.size(); dim-- > 0;) {
    TW_TRY(check_new_loop(kernel, copy_var(dim)));
    nest = make_loop(copy_var(dim), extents[dim], std::move(nest));
  }
  const Stmt reader = rewrite_exprs(store, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      const auto* read = as<expr::Load>(e);
      return read && read->buffer == source ? load(cached, e->type, read->indices) : Expr();
    });
  });
  out.body = replace(kernel.body, place, make_sequence({nest, replace(place, store, reader)}));
  return out;
}

}  // namespace tw::sched
