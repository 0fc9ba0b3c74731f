// reverse_compute_at y i0
//   for i0 in 4 { for i1 in 14 {                  for i0 in 4 {
//     c: c[i0*14+i1] = x[i0*14+i1] * 2              for i1 in 14 { c: c[i0*14+i1] = ... * 2 }
//   } }                                       ->    for y_i in 14 {
//   for i in 56 { y: y[i] = c[i] + 1 }                y: y[i0*14+y_i] = c[i0*14+y_i] + 1
//                                                   }
//                                                 }
//
// The counterpart of compute_at. A reader moves to the end of a loop that runs its producers,
// restricted to the part of their buffers that an iteration completes. Loops are named as in
// compute_at. Points outside the reader's domain are guarded.
//
// Legal: the reader's nest is as lowered, and no other stage writes its buffer. The loop is in
// another, earlier nest, is not a vector loop, and has no reduce or scan loop around it. The
// buffers that the reader takes from the loop are written only there, without holes. Where an
// iteration does not write a whole dimension, the reader's own variables index it. The other data
// it reads is ready before the nest.
#include <algorithm>

#include "ir/schedule/footprint.h"

namespace tw::sched {

namespace {

struct Written {  // part of a buffer that one iteration of the loop writes
  std::vector<DimFootprint> dims;
};

// True: e takes every value between its bounds while the variables of the path's loops run.
bool dense(const Expr& e, const std::vector<Stmt>& path) {
  std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient and extent
  for (const Stmt& s : path) {
    const auto* loop = as<stmt::Loop>(s);
    if (!loop || !uses_var(e, loop->var)) continue;
    const auto term = linear_in(e, loop->var);
    const auto extent = as_const(loop->extent);
    if (!term || !extent || term->coefficient < 1) return false;
    terms.emplace_back(term->coefficient, *extent);
  }
  std::ranges::sort(terms);
  int64_t covered = 1;
  for (const auto& [coefficient, extent] : terms) {
    if (coefficient > covered) return false;
    covered += coefficient * (extent - 1);
  }
  return true;
}

// Requires that ifs between loop and store only keep an index below its end.
Error check_conditions(const Kernel& kernel, const stmt::Store& store,
                       const std::vector<Stmt>& inside) {
  for (const Stmt& s : inside) {
    const auto* guard = as<stmt::If>(s);
    if (!guard) continue;
    std::vector<Expr> parts = {guard->condition};
    for (size_t i = 0; i < parts.size(); ++i) {
      const Expr part = parts[i];
      if (const auto* both = as_binary(part, BinaryOp::logical_and)) {
        parts.insert(parts.end(), {both->a, both->b});
        continue;
      }
      const auto* below = as_binary(part, BinaryOp::lt);
      bool end = false;
      for (size_t d = 0; below && d < store.indices.size(); ++d)
        end |= equal(below->a, store.indices[d]) &&
               equal(below->b, kernel.buffer(store.buffer).shape[d]);
      if (!end)
        return illegal("stage '{0}' is under a condition, so that it may leave out points of '{1}'",
                       store.label, kernel.buffer(store.buffer).name);
    }
  }
  if (store.where.defined() && store.combiner == Combiner::none)
    return illegal("stage '{0}' has a where, and may leave out points", store.label);
  return Error::success();
}

// The exact part that is stored to, not a bound of it; nullopt: it cannot be shown.
std::optional<DimFootprint> written_dim(const Access& access, size_t d, const Expr& size,
                                        const Ranges& outer) {
  if (has_load(access.indices[d])) return std::nullopt;
  const std::optional<Interval> interval = interval_over(access.indices[d], access.inner,
                                                         access.all);
  if (!interval) return std::nullopt;
  const Expr min = simplify(interval->min, outer),
             extent = simplify(interval->max - interval->min + Expr(1), outer);
  const bool whole = can_prove(le(min, Expr(0)), outer) &&
                     can_prove(le(size - Expr(1), interval->max), outer);
  if (whole) return DimFootprint{Expr(0), size, true};
  if (!as_const(extent)) return std::nullopt;
  return DimFootprint{min, extent, false};
}

Expected<Written> written_in(const Kernel& kernel, BufferId buffer, const std::vector<Stmt>& path,
                             const Ranges& outer) {
  Written all;
  const std::string& name = kernel.buffer(buffer).name;
  const auto& loop = get<stmt::Loop>(path.back());
  for (const StoreRef& store : stores_of(loop.body)) {
    if (store->buffer != buffer) continue;
    std::vector<Stmt> inside = find_path(loop.body, store);
    inside.pop_back();
    TW_TRY(check_conditions(kernel, *store, inside));
    Access access{store->indices, {}, outer};
    add_ranges(access.inner, inside);
    add_ranges(access.all, inside);
    for (size_t d = 0; d < store->indices.size(); ++d) {
      const std::optional<DimFootprint> found = written_dim(access, d,
                                                            kernel.buffer(buffer).shape[d], outer);
      if (!found || !dense(store->indices[d], inside))
        return illegal(
            "it is not known which part of '{0}' stage '{1}' writes in an iteration of loop '{2}'",
            name, store->label, loop.var);
      const DimFootprint& footprint = *found;
      if (all.dims.size() == d) all.dims.push_back(footprint);
      else if (!equal(all.dims[d].min, footprint.min) ||
               !equal(all.dims[d].extent, footprint.extent))
        return illegal("the stages that write '{0}' in the loop write different parts of it", name);
    }
  }
  return all;
}

// Requires that a buffer the reader reads is whole, written in the loop alone, or ready before the
// loop's nest starts.
Error check_order(const Kernel& kernel, const LoweredStage& reader, const std::vector<Stmt>& path) {
  const std::string &label = reader.store->label, &loop = get<stmt::Loop>(path.back()).var;
  bool started = false, after = false;
  for (const StoreRef& store : stores_of(kernel.body)) {
    started |= contains(path.front(), store);
    after |= store.stmt() == reader.store.stmt();
    if (!started || after) continue;
    const std::string& name = kernel.buffer(store->buffer).name;
    if (reads(store, reader.store->buffer))
      return illegal("stage '{0}' reads '{1}' earlier", store->label,
                     kernel.buffer(reader.store->buffer).name);
    if (reads(reader.nest, store->buffer) && !contains(path.back(), store))
      return illegal("stage '{0}' reads '{1}', which stage '{2}' makes outside of loop '{3}'",
                     label, name, store->label, loop);
  }
  if (!started || !after) return illegal("loop '{0}' comes after stage '{1}'", loop, label);
  for (const StoreRef& store : stores_of(path.back())) {
    if (!reads(reader.nest, store->buffer)) continue;
    for (const StoreRef& other : stores_of(kernel.body))
      if (other->buffer == store->buffer && !contains(path.back(), other))
        return illegal("'{0}' is written outside of loop '{1}' too, in stage '{2}'",
                       kernel.buffer(store->buffer).name, loop, other->label);
  }
  return Error::success();
}

Error check_loop(const std::vector<Stmt>& path) {
  for (const Stmt& s : path) {
    const auto* loop = as<stmt::Loop>(s);
    if (!loop) continue;
    if (loop->role != AxisRole::spatial)
      return illegal("values are not complete in the {0} loop '{1}'", axis_role_name(loop->role),
                     loop->var);
    if (loop->kind == LoopKind::vector)
      return illegal("loop '{0}' is a vector loop: nothing can be computed in it", loop->var);
  }
  return Error::success();
}

// The part of each of the reader's loops that it covers in an iteration of the loop, from what its
// reads find complete there; unset: all of it.
Expected<std::vector<std::optional<DimFootprint>>> parts_of_loops(const Kernel& kernel,
                                                                  const LoweredStage& reader,
                                                                  const std::vector<Stmt>& path,
                                                                  const Ranges& outer) {
  std::vector<std::optional<DimFootprint>> parts(reader.spatial.size());
  const std::string &stage = reader.store->label, &loop = get<stmt::Loop>(path.back()).var;
  std::vector<expr::Load> taken;
  visit_loads(reader.nest, [&](const expr::Load& load, std::span<const Stmt>) {
    if (writes(path.back(), load.buffer)) taken.push_back(load);
  });
  if (taken.empty()) return illegal("stage '{0}' reads nothing that loop '{1}' makes", stage, loop);
  for (const expr::Load& load : taken) {
    TW_ASSIGN(const Written written, written_in(kernel, load.buffer, path, outer));
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const DimFootprint& footprint = written.dims[d];
      if (footprint.whole) continue;
      const auto own = std::ranges::find_if(
          reader.spatial, [&](const LoopRef& axis) { return is_var(load.indices[d], axis->var); });
      if (own == reader.spatial.end())
        return illegal(
            "stage '{0}' reads '{1}' beyond the part that an iteration of loop '{2}' completes",
            stage, kernel.buffer(load.buffer).name, loop);
      std::optional<DimFootprint>& part = parts[static_cast<size_t>(own - reader.spatial.begin())];
      if (part && (!equal(part->min, footprint.min) || !equal(part->extent, footprint.extent)))
        return illegal(
            "an iteration of loop '{0}' completes different parts of what stage '{1}' reads", loop,
            stage);
      part = footprint;
    }
  }
  return parts;
}

// Requires a wait in the loop for asynchronous copies that the reader reads.
Error check_arrived(const Kernel& kernel, const LoweredStage& reader, const stmt::Loop& loop) {
  for (const StoreRef& store : stores_of(loop.body))
    if (store->async && reads(reader.nest, store->buffer) &&
        !waits_for(loop.body, done_queue(store->label)))
      return illegal(
          "stage '{0}' copies '{1}' asynchronously, and is waited for outside of loop '{2}'",
          store->label, kernel.buffer(store->buffer).name, loop.var);
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::ReverseComputeAt& s) {
  TW_ASSIGN(LoweredStage reader, lowered_stage(kernel, s.stage));
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  if (path.front() == reader.nest)
    return illegal("loop '{0}' belongs to stage '{1}' itself", s.loop, s.stage);
  TW_TRY(check_loop(path));
  TW_TRY(check_movable(kernel, reader));
  TW_TRY(check_order(kernel, reader, path));
  TW_TRY(check_arrived(kernel, reader, get<stmt::Loop>(path.back())));
  const Ranges outer = ranges_of(kernel, path);
  TW_ASSIGN(const auto of_loop, parts_of_loops(kernel, reader, path, outer));
  std::vector<DimFootprint> footprints;
  for (size_t d = 0; d < reader.loop_of_dim.size(); ++d) {
    const int loop = reader.loop_of_dim[d];
    const bool part = loop >= 0 && of_loop[static_cast<size_t>(loop)];
    footprints.push_back(part ? *of_loop[static_cast<size_t>(loop)]
                              : DimFootprint{Expr(0), reader.extent_of_dim(d), true});
  }
  // Every loop around must move the reader's part. In a loop that does not, the reader would run
  // again in each iteration, before all its data is there.
  for (const Stmt& around : path) {
    const auto* loop = as<stmt::Loop>(around);
    if (!loop || is_const(loop->extent, 1)) continue;
    const bool moves = std::ranges::any_of(
        footprints, [&](const DimFootprint& r) { return uses_var(r.min, loop->var); });
    if (!moves)
      return illegal("stage '{0}' would run again in each iteration of loop '{1}'", s.stage,
                     loop->var);
  }
  for (const LoopRef& axis : reader.spatial)
    TW_TRY(check_new_loop(kernel, axis_name(s.stage, axis->var)));
  const Stmt body = make_sequence(
      {get<stmt::Loop>(path.back()).body, footprint_nest(reader, footprints, outer, false)});
  Kernel out = with_replaced(kernel, path, with_body(path.back(), body));
  out.body = replace(out.body, reader.nest, nullptr);
  return out;
}

}  // namespace tw::sched
