// pipeline k 3 xs
//   temp xs: f32[8]                              temp xs: f32[3, 8]
//   for k in 6 reduce {                          for k_pro in 2 { for i_pro in 8 {
//     for i in 8 { xs: xs[i] = x[k, i] }           xs.pro: xs[k_pro % 3, i_pro] = x[k_pro, i_pro]
//     for i1 in 8 reduce {                       } }
//       c: c[0] += xs[i1]                  ->    for k in 6 reduce {
//     }                                            if k + 2 < 6 { for i in 8 {
//   }                                                xs: xs[(k + 2) % 3, i] = x[k + 2, i]
//                                                  } }
//                                                  for i1 in 8 reduce { c: c[0] += xs[k % 3, i1] }
//                                                }
//
// The named stages run 2 = 3 - 1 iterations ahead of the rest of the loop's body, into a ring of 3
// slots. The token of an asynchronous copy is signalled where the copy starts, and the rest of the
// body waits for it. Up to 3 copies are in flight.
//
// Legal: a serial loop, depth >= 2, at least depth - 1 iterations, and no iteration exchanges
// tokens with others. The stages stand in the loop's body. They write temps that nothing else
// writes and that nothing outside the loop uses. They read nothing that the rest writes, and have
// no init that the loop starts.
#include <algorithm>

#include "ir/schedule/owners.h"

namespace tw::sched {

namespace {

struct Parts {
  std::vector<Stmt> ahead, rest;
  std::vector<BufferId> ring;
};

bool is_named(const std::vector<std::string>& stages, const std::string& label) {
  return std::ranges::find(stages, label) != stages.end();
}

Expected<Parts> parts_of(const stmt::Loop& loop, const std::vector<std::string>& stages) {
  Parts parts;
  for (const Stmt& child : statements(loop.body)) {
    const std::vector<StoreRef> stores = stores_of(child);
    size_t named = 0;
    for (const StoreRef& store : stores) {
      if (!is_named(stages, store->label)) continue;
      ++named;
      if (std::ranges::find(parts.ring, store->buffer) == parts.ring.end())
        parts.ring.push_back(store->buffer);
    }
    if (named > 0 && named < stores.size())
      return illegal("stage '{0}' is in one nest with others", stores[0]->label);
    const auto* signal = as<stmt::Signal>(child);
    const bool started = signal && std::ranges::any_of(stages, [&](const std::string& s) {
                           return done_queue(s) == signal->queue;
                         });
    (named > 0 || started ? parts.ahead : parts.rest).push_back(child);
  }
  const std::vector<StoreRef> all = stores_of(loop.body);
  for (const std::string& stage : stages) {
    if (std::ranges::count(stages, stage) > 1) return illegal("stage '{0}' is named twice", stage);
    if (std::ranges::none_of(all, [&](const StoreRef& store) { return store->label == stage; }))
      return illegal("loop '{0}' has no stage '{1}': {2}", loop.var, stage, it_has(all));
  }
  return parts;
}

Error check_parts(const Kernel& kernel, const LoopRef& loop, const Parts& parts) {
  const Stmt ahead = make_sequence(parts.ahead), rest = make_sequence(parts.rest),
             outside = replace(kernel.body, loop, nullptr);
  for (const BufferId id : parts.ring) {
    const Buffer& buffer = kernel.buffer(id);
    if (buffer.role != BufferRole::temp)
      return illegal("'{0}' is a parameter: it cannot become a ring", buffer.name);
    if (writes(rest, id))
      return illegal("'{0}' is written by the rest of loop '{1}' too", buffer.name, loop->var);
    if (reads(outside, id) || writes(outside, id))
      return illegal("'{0}' is used outside of loop '{1}'", buffer.name, loop->var);
  }
  for (const StoreRef& store : stores_of(rest))
    if (reads(ahead, store->buffer))
      return illegal("the stages read '{0}', which the rest of loop '{1}' writes",
                     kernel.buffer(store->buffer).name, loop->var);
  for (const StoreRef& store : stores_of(ahead))
    if (loop->role == AxisRole::reduce && store->init.defined())
      return illegal("the reduce loop '{0}' starts the init of stage '{1}'", loop->var,
                     store->label);
  bool waits = false;
  visit(ahead, [&](const Stmt& s) { waits |= is<stmt::Wait>(s); });
  if (waits) return illegal("a stage waits for a token in the middle of its nest");
  return Error::success();
}

}  // namespace

Kernel with_slots(const Kernel& kernel, BufferId buffer, int64_t depth, const Expr& iteration,
                  const Stmt& where) {
  Kernel out = kernel;
  std::vector<Expr>& shape = out.buffer(buffer).shape;
  shape.insert(shape.begin(), Expr(depth));
  const Stmt with = map_accesses(where, buffer, [&](std::vector<Expr> indices) {
    indices.insert(indices.begin(), simplify(floor_mod(iteration, Expr(depth))));
    return indices;
  });
  out.body = without_stale_prefetches(out, replace(kernel.body, where, with));
  return out;
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::Pipeline& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const LoopRef found(path.back());
  TW_TRY(check_serial(*found));
  TW_TRY(check_no_tokens(kernel, *found));
  const std::optional<int64_t> extent = as_const(found->extent);
  if (s.depth < 2) return illegal("a pipeline of depth {0} has nothing ahead", s.depth);
  if (!extent || *extent < s.depth - 1)
    return illegal("loop '{0}' needs a constant extent of at least {1}", s.loop, s.depth - 1);
  TW_ASSIGN(const Parts before, parts_of(*found, s.stages));
  TW_TRY(check_parts(kernel, found, before));
  TW_TRY(check_suffix(kernel, *found, make_sequence(before.ahead), "pro"));
  Kernel out = kernel;
  for (const BufferId id : before.ring) {
    TW_ASSIGN(path, loop_path(out, s.loop));
    out = with_slots(out, id, s.depth, var(s.loop), path.back());
  }
  TW_ASSIGN(path, loop_path(out, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_ASSIGN(const Parts parts, parts_of(loop, s.stages));
  const Stmt ahead = make_sequence(parts.ahead);
  const std::string first = s.loop + "_pro";
  const Stmt prologue = make_loop(first, Expr(s.depth - 1),
                                  substitute(renamed(ahead, "pro"), s.loop, var(first)));
  const Expr later = var(s.loop) + Expr(s.depth - 1);
  std::vector<Stmt> steady = {make_if(lt(later, loop.extent), substitute(ahead, s.loop, later))};
  steady.insert(steady.end(), parts.rest.begin(), parts.rest.end());
  const Stmt rest = with_body(path.back(), make_sequence(std::move(steady)));
  return with_replaced(out, path, make_sequence({prologue, rest}));
}

}  // namespace tw::sched
