// pad k 4
//   for k in 10 reduce {                for k in 12 reduce {
//     c: c[i] += x[i, k] init 0   ->      c: c[i] += x[i, k] where k < 10 init 0
//   }                                   }
// pad i 4
//   temp t: f32[10]                     temp t: f32[12]
//   for i in 10 {                       for i in 12 {
//     t: t[i] = x[i]              ->      t: t[i] = select(i < 10, x[i], 0)
//   }                                   }
//
// pad i 4 repeat
//   for i in 10 {                       for i in 12 {
//     t: t[i] = x[i]              ->      t: t[i] = x[min(i, 9)]
//   }                                   }
// pad i 4
//   y: out f32[10]                      y: out f32[10]
//   for i in 10 {                       for i in 12 {
//     y: y[i] = x[i]              ->      y: y[i] = x[i] where i < 10
//   }                                   }
//
// pad a b 4
//   temp t: f32[2, 10]                  temp t: f32[2, 12]
//   for a in 10 {                       for a in 12 {
//     u: t[0, a] = 0                      u: t[0, a] = 0
//   }                             ->    }
//   for b in 10 {                       for b in 12 {
//     t: t[1, b] = x[b]                   t: t[1, b] = select(b < 10, x[b], 0)
//   }                                   }
//
// The extent becomes a multiple of the factor, so splits by it need no guard. The added points
// contribute nothing to sums: a condition leaves them out, unless the factors are temps that hold
// zeros there. In a temp, which grows with them, they hold 0 or the init. Behind `max`, `min` or
// `mul` a temp holds what counts for nothing in that combiner, and a stage that combines it so
// needs no condition. With `repeat` they hold anything, as nobody reads them: a load that would
// leave its buffer reads the nearest element, and a stage that reads what is not written repeats
// its last point. Nothing is stored there into a parameter.
//
// Legal: a serial loop. In a reduce loop every store combines. In a spatial loop exactly one index
// of every store to a temp is the loop's variable, alone, all nests that write the temp are padded
// together, and stores to parameters overwrite. Loops that are padded together have one extent.
// Only spatial loops have a combiner. Only they repeat, without one, and stages in them that
// overwrite, have an init, or get places that their temp did not have.
#include <algorithm>
#include <functional>

#include "ir/kernel/bounds.h"
#include "ir/schedule/filling.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

// The dimension whose index is the variable alone; -1: there is none, or the variable has other
// uses.
int own_dim(const stmt::Store& store, const std::string& v) {
  int dim = -1;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!uses_var(store.indices[d], v)) continue;
    if (dim >= 0 || !is<expr::Var>(store.indices[d])) return -1;
    dim = static_cast<int>(d);
  }
  return dim;
}

// The dimension of a loop with one iteration, whose index is 0, in a stage that is as lowered
int single_dim(const Kernel& kernel, const stmt::Store& store, const std::string& v) {
  Expected<LoweredStage> stage = lowered_stage(kernel, store.label, true);
  if (!stage) return llvm::consumeError(stage.takeError()), -1;
  const std::vector<LoopRef>& loops = stage->spatial;
  const auto own = std::ranges::find_if(loops, [&](const LoopRef& l) { return l->var == v; });
  if (own == loops.end() || loops.size() != store.indices.size()) return -1;
  const auto dim = own - loops.begin();
  return is_const(store.indices[static_cast<size_t>(dim)], 0) ? static_cast<int>(dim) : -1;
}

int grown_dim(const Kernel& kernel, const stmt::Store& store, const stmt::Loop& loop) {
  const int dim = own_dim(store, loop.var);
  return dim < 0 && is_const(loop.extent, 1) ? single_dim(kernel, store, loop.var) : dim;
}

// True: one of these loops is by itself the store's index of the dimension.
bool grows_with(const Kernel& kernel, const StoreRef& store, int dim,
                const std::vector<std::string>& loops) {
  return std::ranges::any_of(find_path(kernel.body, store), [&](const Stmt& around) {
    const auto* loop = as<stmt::Loop>(around);
    return loop && std::ranges::count(loops, loop->var) > 0 &&
           grown_dim(kernel, *store, *loop) == dim;
  });
}

// Lets the store's buffer have the points of the loop up to the extent. together: all loops that
// the step pads
Error grow(Kernel& out, const stmt::Store& store, const stmt::Loop& loop, const Expr& extent,
           const std::vector<std::string>& together) {
  Buffer& buffer = out.buffer(store.buffer);
  if (buffer.role != BufferRole::temp && store.combiner == Combiner::none) return Error::success();
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' combines values in the parameter '{1}', which cannot grow",
                   store.label, buffer.name);
  const int dim = grown_dim(out, store, loop);
  if (dim < 0)
    return illegal("loop '{0}' is not by itself an index of stage '{1}'", loop.var, store.label);
  Expr& size = buffer.shape[static_cast<size_t>(dim)];
  for (const StoreRef& other : stores_of(out.body))
    if (other->buffer == store.buffer && !grows_with(out, other, dim, together))
      return illegal("stage '{0}' writes '{1}' too: pad its loop together with '{2}'", other->label,
                     buffer.name, loop.var);
  const std::optional<int64_t> now = as_const(size), wanted = as_const(extent);
  if (now && wanted ? *now < *wanted : equal(size, loop.extent)) size = extent;
  else if (!equal(size, extent) && (!now || !wanted))
    return illegal("it cannot be shown that '{0}' has room for the added points", buffer.name);
  return Error::success();
}

// True: the index does not leave its buffer while the variable has this range.
bool fits(const Expr& index, const Expr& extent, const std::string& variable, const Range& range,
          const Ranges& others) {
  if (!uses_var(index, variable)) return true;
  const std::optional<Interval> ends = interval_over(index, {{variable, range}}, others);
  return ends && can_prove(le(Expr(0), ends->min), others) &&
         can_prove(lt(ends->max, extent), others);
}

// True: no index that uses the variable leaves its buffer while the variable has this range.
bool stays_inside(const Kernel& kernel, const stmt::Store& store, const std::string& variable,
                  const Range& range, const Ranges& others) {
  bool inside = true;
  const auto look = [&](const Expr& whole) {
    visit(whole, [&](const Expr& e) {
      const auto* load = as<expr::Load>(e);
      for (size_t dim = 0; load && inside && dim < load->indices.size(); ++dim)
        inside = fits(load->indices[dim], kernel.buffer(load->buffer).shape[dim], variable, range,
                      others);
    });
  };
  look(store.value);
  if (store.where.defined()) look(store.where);
  return inside;
}

// True: conditions on the store's loads keep them inside of their buffers while the loop runs to
// the extent.
bool is_guarded(const Kernel& kernel, const stmt::Loop& loop, const Stmt& store,
                const Expr& extent) {
  const std::vector<Stmt> path = find_path(kernel.body, store);
  Kernel alone = kernel;
  alone.body = store;
  for (size_t i = path.size() - 1; i-- > 0;)
    if (const auto* around = as<stmt::Loop>(path[i]))
      alone.body = make_loop(around->var, around->var == loop.var ? extent : around->extent,
                             alone.body, around->kind, around->role);
  if (Error error = check_bounds(alone, Tables::ours)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  return true;
}

// The index, or the nearest one in the buffer where more of the variable's values lead out of it
Expr nearest(const Expr& index, const Expr& extent, const std::string& variable) {
  const std::optional<LinearTerm> term = linear_in(index, variable);
  Expr inside = index;
  if (!term || term->coefficient > 0) inside = min(inside, extent - Expr(1));
  if (!term || term->coefficient < 0) inside = max(inside, Expr(0));
  return inside;
}

// True: stages write what the store reads of temps at the loop's points, also at added ones.
bool reads_whole(const Kernel& kernel, const stmt::Store& store, const std::string& variable,
                 const Ranges& ranges) {
  bool whole = reads_written(kernel, store.value, store.where, ranges);
  visit(store.value, [&](const Expr& e) {
    const auto* read = as<expr::Load>(e);
    if (read && std::ranges::any_of(read->indices,
                                    [&](const Expr& index) { return uses_var(index, variable); }))
      whole &= is_whole(kernel, read->buffer, true);
  });
  return whole;
}

// The store, whose loads at the added points stay inside of their buffers
stmt::Store repeated(const Kernel& kernel, const stmt::Loop& loop, const Stmt& found,
                     const Expr& extent) {
  const auto& store = get<stmt::Store>(found);
  const Ranges ranges = ranges_of(kernel, find_path(kernel.body, found));
  const Range all{Expr(0), simplify(extent - Expr(1), ranges)};
  bool clamps_temp = !reads_whole(kernel, store, loop.var, ranges);
  if (!clamps_temp && stays_inside(kernel, store, loop.var, all, ranges)) return store;
  if (!clamps_temp && is_guarded(kernel, loop, found, extent)) return store;
  const std::function<Expr(const Expr&)> kept_inside = [&](const Expr& e) {
    const Expr inner = with_operands(e, kept_inside);
    const auto* read = as<expr::Load>(inner);
    if (!read) return inner;
    const Buffer& buffer = kernel.buffer(read->buffer);
    std::vector<Expr> at = read->indices;
    for (size_t dim = 0; dim < at.size(); ++dim) {
      if (fits(at[dim], buffer.shape[dim], loop.var, all, ranges)) continue;
      at[dim] = nearest(at[dim], buffer.shape[dim], loop.var);
      clamps_temp |= buffer.role == BufferRole::temp;
    }
    return load(read->buffer, inner.type(), std::move(at));
  };
  const auto keep = [&](const std::function<Expr(const Expr&)>& inside) {
    stmt::Store kept = store;
    kept.value = inside(store.value);
    if (store.where.defined()) kept.where = inside(store.where);
    return kept;
  };
  stmt::Store kept = keep(kept_inside);
  // Not all elements of a temp need be written. Those are that the last point reads.
  if (clamps_temp)
    kept = keep([&](const Expr& e) {
      return substitute(e, loop.var, min(var(loop.var), loop.extent - Expr(1)));
    });
  return kept;
}

// True: the store combines nothing while the variable has the range `added`, and its loads stay
// inside of their buffers while it has all of its values.
bool adds_nothing_beyond(const Kernel& kernel, const Stmt& found, const std::string& variable,
                         const Range& added) {
  const auto& store = get<stmt::Store>(found);
  const Ranges ranges = ranges_of(kernel, find_path(kernel.body, found));
  if (!stays_inside(kernel, store, variable, {Expr(0), added.max}, ranges)) return false;
  Ranges beyond = ranges;
  beyond[variable] = added;
  return adds_nothing(kernel, store, ranges, [&](const Expr& condition) {
    return is_const(simplify(condition, beyond), 0);
  });
}

// True: the added points get places that the store's buffer did not have before.
bool makes_room(const Kernel& before, const stmt::Store& store, const stmt::Loop& loop) {
  const int dim = grown_dim(before, store, loop);
  return dim >= 0 &&
         equal(before.buffer(store.buffer).shape[static_cast<size_t>(dim)], loop.extent);
}

// Requires that the combiner says what some temp holds at the added points.
Error check_combiner(const Kernel& kernel, const stmt::Loop& loop, const step::Pad& s) {
  if (s.combiner == Combiner::add) return Error::success();
  const char* word = combiner_name(s.combiner);
  if (s.repeat) return illegal("points that nobody reads need no combiner, as {0} is", word);
  if (loop.role == AxisRole::reduce)
    return illegal(
        "loop '{0}' is a reduce loop, whose stages leave the added points out: {1} is for the "
        "spatial loops of temps",
        loop.var, word);
  const bool sets = std::ranges::any_of(stores_of(loop.body), [&](const StoreRef& store) {
    return store->combiner == Combiner::none &&
           kernel.buffer(store->buffer).role == BufferRole::temp;
  });
  return sets ? Error::success()
              : illegal(
                    "no stage in loop '{0}' sets a temp, which could hold what {1} leaves as "
                    "it is",
                    loop.var, word);
}

// before: the kernel in front of the step, which may pad several loops
Expected<Kernel> pad_one(const Kernel& before, const Kernel& kernel, const step::Pad& s,
                         const std::string& name) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, name));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  if (s.factor < 1) return illegal("the factor {0} for loop '{1}' is not positive", s.factor, name);
  TW_TRY(check_combiner(kernel, loop, s));
  if (loop.role == AxisRole::scan)
    return illegal("loop '{0}' is a scan: it cannot run longer", name);
  if (s.repeat && loop.role != AxisRole::spatial)
    return illegal("loop '{0}' is a {1} loop: only spatial loops repeat their last point", name,
                   axis_role_name(loop.role));
  const Ranges ranges = ranges_of(kernel, path);
  if (is_const(simplify(floor_mod(loop.extent, Expr(s.factor)), ranges), 0)) return kernel;
  const auto of_instruction = [](const StmtNode& inner) {
    const auto* block = as<stmt::Block>(inner);
    return block && !block->intrinsic.empty();
  };
  if (contains(loop.body, of_instruction))
    return illegal("an instruction is in loop '{0}', and has no added points: pad it before", name);
  TW_TRY(check_no_tokens(kernel, loop));
  const Expr extent = simplify(ceil_div(loop.extent, s.factor) * Expr(s.factor), ranges),
             inside = lt(var(name), loop.extent);
  Kernel out = kernel;
  for (const StoreRef& store : stores_of(loop.body)) {
    if (s.repeat && store->combiner != Combiner::none && !store->init.defined() &&
        !makes_room(before, *store, loop))
      return illegal("stage '{0}' adds to what another stage has stored, also at the added points",
                     store->label);
    if (loop.role == AxisRole::spatial) TW_TRY(grow(out, *store, loop, extent, s.loops));
    else if (store->combiner == Combiner::none)
      return illegal("stage '{0}' in the reduce loop '{1}' does not combine", store->label, name);
  }
  const Stmt body = rewrite(loop.body, [&](const Stmt& inner) -> Stmt {
    const auto* found = as<stmt::Store>(inner);
    if (!found) return nullptr;
    if (loop.role == AxisRole::spatial && kernel.buffer(found->buffer).role != BufferRole::temp)
      return with_condition(inner, inside);
    stmt::Store store = s.repeat ? repeated(out, loop, inner, extent) : *found;
    if (loop.role == AxisRole::spatial)
      store.indices[static_cast<size_t>(grown_dim(out, store, loop))] = var(name);
    if (s.repeat) return make_store(std::move(store));
    Ranges at_end = ranges_of(kernel, find_path(kernel.body, inner));
    at_end[name] = {Expr(0), simplify(extent - Expr(1), ranges)};
    const Range added{loop.extent, simplify(extent - Expr(1), ranges)};
    if (loop.role == AxisRole::reduce && adds_nothing_beyond(kernel, inner, loop.var, added))
      return nullptr;
    if (store.combiner == Combiner::none)
      store.value = filled(inside, store.value, identity_of(s.combiner, store.value.type()),
                           at_end);
    else store.where = logical_and(inside, store.where);
    return make_store(std::move(store));
  });
  return with_replaced(out, path, make_loop(name, extent, body, LoopKind::serial, loop.role));
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Pad& s) {
  Expr extent;
  for (const std::string& name : s.loops) {
    TW_ASSIGN(const std::vector<Stmt> path, loop_path(kernel, name));
    const auto& loop = get<stmt::Loop>(path.back());
    if (extent.defined() && !equal(loop.extent, extent))
      return illegal("loops '{0}' and '{1}' have different extents", s.loops.front(), name);
    if (std::ranges::count(s.loops, name) > 1) return illegal("loop '{0}' is named twice", name);
    extent = loop.extent;
  }
  Kernel out = kernel;
  for (const std::string& name : s.loops) { TW_ASSIGN(out, pad_one(kernel, out, s, name)); }
  return out;
}

}  // namespace tw::sched
