// compute_at c i0
//   for i in 56 { for k in 64 reduce {            for i0 in 4 {
//     c: c[i] += a[i, k] init 0                     for c_i in 14 { for k in 64 reduce {
//   } }                                       ->      c: c[c_i] += a[i0*14+c_i, k] init 0
//   for i0 in 4 { for i1 in 14 {                    } }
//     y: y[i0*14+i1] = max(0, c[i0*14+i1])          for i1 in 14 { y: y[i0*14+i1] = max(0, c[i1]) }
//   } }                                           }
// The footprint of c that the loop's body reads: a minimum in the outer variables and a constant
// extent (or a bound of it) per dimension, or the whole dimension where no such interval can be
// shown. c shrinks to it, loops are named "<stage>_<var>" (none for extent 1), reduce loops keep
// their names. Points of the footprint outside c's domain are guarded. A global c of at most
// kMaxStackBufferBytes moves to the stack. Under a reduce loop of the consumer the init becomes a
// nest of its own, as it must run in each of that loop's iterations. Legal: c is a temp with its
// nest as lowered; all readers are in the loop, which is not a vector loop; what c reads is not
// changed later.
#include <algorithm>

#include "ir/kernel/stack_limits.h"
#include "ir/schedule/footprint.h"

namespace tw::sched {

namespace {

// A copy under way reads its source until it is waited for, and an iteration writes where the one
// before it did.
Error check_copies(const StmtNode& loop, BufferId id, const std::string& name) {
  for (const Stmt& store : stores_of(loop.body[0])) {
    if (!store->async || !reads(store, id)) continue;
    const std::string queue = done_queue(store->label);
    const bool waited = !find_path(loop.body[0], [&](const StmtNode& s) {
                           return s.kind == StmtKind::wait && s.label == queue;
                         }).empty();
    if (!waited)
      return illegal(
          "the asynchronous copy of stage '{0}' reads '{1}', and is waited for outside of loop "
          "'{2}'",
          store->label, name, loop.var);
  }
  return Error::success();
}

Error check_target(const Kernel& kernel, const LoweredStage& stage, const std::vector<Stmt>& path,
                   size_t readers) {
  const std::string& label = stage.store->label;
  const Buffer& buffer = kernel.buffer(stage.store->buffer);
  const StmtNode& loop = *path.back();
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}', which must be complete", label,
                   buffer.name);
  for (size_t i = 0; i < stage.scans.size(); ++i)
    if (i + 1 >= path.size() || path[i] != stage.scans[i])
      return illegal(
          "stage '{0}' is in scan loop '{1}', loop '{2}' is not: it would see the last iteration "
          "only",
          label, stage.scans[i]->var, loop.var);
  if (std::ranges::find(path, stage.nest) != path.end())
    return illegal("loop '{0}' belongs to stage '{1}' itself", loop.var, label);
  if (loop.loop_kind == LoopKind::vector)
    return illegal("loop '{0}' is a vector loop: nothing can be computed in it", loop.var);
  TW_TRY(check_movable(kernel, stage));
  if (readers == 0) return illegal("nothing in loop '{0}' reads '{1}'", loop.var, buffer.name);
  size_t all = 0;
  std::string outside;
  for (const Stmt& store : stores_of(kernel.body)) {
    size_t here = 0;
    visit_loads(store, [&](const ExprNode& load, std::span<const Stmt>) {
      here += load.buffer == stage.store->buffer;
    });
    all += here;
    if (here > 0 &&
        find_path(path.back(), [&](const StmtNode& s) { return &s == store.get(); }).empty())
      outside = store->label;
  }
  if (!outside.empty())
    return illegal("stage '{0}' reads '{1}' outside of loop '{2}'", outside, buffer.name, loop.var);
  if (all != readers) return illegal("a loop extent or condition reads '{0}'", buffer.name);
  TW_TRY(check_copies(loop, stage.store->buffer, buffer.name));
  for (const Stmt& axis : stage.spatial)
    if (axis_name(label, axis->var) != axis->var)
      TW_TRY(check_new_loop(kernel, axis_name(label, axis->var)));
  return Error::success();
}

// The init of a combining stage under somebody else's reduce loops becomes a nest of its own.
Expected<Stmt> separate_init(const Kernel& kernel, const Stmt& nest, const std::string& label) {
  const std::vector<Stmt> path = find_path(
      nest, [&](const StmtNode& s) { return s.kind == StmtKind::store; });
  TW_TRY(check_new_stage(kernel, init_label(label)));
  for (const Stmt& s : path)
    if (s->kind == StmtKind::loop && s->role == AxisRole::spatial)
      TW_TRY(check_new_loop(kernel, init_name(s->var)));
  return make_sequence({init_nest(path), replace(nest, path.back(), without_init(path.back()))});
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeAt& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const BufferId id = stage.store->buffer;
  const std::vector<Access> readers = accesses(kernel, id, path);
  TW_TRY(check_target(kernel, stage, path, readers.size()));

  const Ranges outer = ranges_of(kernel, path);
  Kernel out = kernel;
  Buffer& buffer = out.buffer(id);
  std::vector<DimFootprint> footprints;
  for (size_t dim = 0; dim < buffer.shape.size(); ++dim) {
    footprints.push_back(footprint_of_dim(readers, dim, stage.extent_of_dim(dim), outer));
    buffer.shape[dim] = footprints[dim].extent;
  }
  const std::optional<int64_t> bytes = constant_bytes(buffer);
  if (buffer.scope == "global" && bytes && *bytes <= kMaxStackBufferBytes) buffer.scope = "stack";

  Stmt nest = footprint_nest(stage, footprints, outer, true);
  const bool in_reduce = std::ranges::any_of(
      path, [](const Stmt& p) { return p->kind == StmtKind::loop && p->role == AxisRole::reduce; });
  if (in_reduce && stage.store->init.defined()) {
    TW_ASSIGN(nest, separate_init(kernel, nest, s.stage));
  }
  const Stmt consumer = map_accesses(path.back()->body[0], id, [&](std::vector<Expr> indices) {
    for (size_t dim = 0; dim < indices.size(); ++dim)
      indices[dim] = indices[dim] - footprints[dim].min;
    return indices;
  });
  const StmtNode& loop = *path.back();
  const Stmt with = with_body(loop, make_sequence({nest, consumer}));
  Kernel moved = with_replaced(out, path, with);
  moved.body = replace(moved.body, stage.nest, nullptr);
  return moved;
}

}  // namespace tw::sched
