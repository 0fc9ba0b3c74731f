// virtual_thread v
//   temp t: f32[4] stack                  temp t: f32[4] stack per v
//   for v in 2 {                          for v in 2 vthread {
//     for j in 4 { t: t[j] = ... }  ->      for j in 4 { t: t[j] = ... }
//     y: y[v] = t[0] + t[1]                 y: y[v] = t[0] + t[1]
//   }                                     }
// bind i block.x
//   for i in 8 {    ->    for i in 8 bind block.x {
//
// The iterations run at the same time. Virtual threads are interleaved to hide latency; a CPU runs
// them next to each other in the innermost loops. Bound iterations are those of one of the target's
// axes. Temps inside become private ("per"): to a virtual thread, unless they are global; to the
// innermost iteration, if they have scope stack or register; to the iteration of the level that the
// target gives their scope.
//
// Legal: a serial spatial loop; for virtual threads of constant extent <= 64. For bind the target
// has the axis, the extent does not exceed it, and no loop around or inside is bound to it. An
// iteration writes private data or its own part, and no other iteration reads that.
#include <algorithm>

#include "ir/schedule/owners.h"
#include "ir/target.h"

namespace tw::sched {

namespace {

constexpr int64_t kMaxVirtualThreads = 64;

Expected<Kernel> mark(const Kernel& kernel, std::span<const Stmt> path, LoopKind kind,
                      const std::string& axis, const Target* target) {
  stmt::Loop loop = get<stmt::Loop>(path.back());
  if (loop.role != AxisRole::spatial)
    return illegal("loop '{0}' is a {1} loop: only spatial loops can run at the same time",
                   loop.var, axis_role_name(loop.role));
  for (const Stmt& s : path.first(path.size() - 1))
    if (const auto* around = as<stmt::Loop>(s);
        around && (around->kind == LoopKind::vector || around->kind == LoopKind::unroll))
      return illegal("loop '{0}' is inside of the {1} loop '{2}'", loop.var,
                     loop_kind_name(around->kind), around->var);
  const bool waits = contains(loop.body, [](const StmtNode& n) {
    const auto* signal = as<stmt::Signal>(n);
    return signal && signal->async;
  });
  const std::vector<StoreRef> stores = stores_of(loop.body);
  const auto copy = std::ranges::find_if(stores,
                                         [](const StoreRef& store) { return store->async; });
  if (copy != stores.end() && !waits && kind != LoopKind::bind)
    return illegal(
        "the asynchronous copies of stage '{0}' in loop '{1}' are waited for outside of it",
        (*copy)->label, loop.var);
  const Stmt outside = replace(kernel.body, path.back(), nullptr);
  for (const TokenQueue& queue : kernel.queues) {
    const auto is_use = [&](const StmtNode& n) { return queue_of(n) == queue.name; };
    if (contains(loop.body, is_use) && contains(outside, is_use))
      return illegal("tokens of '{0}' order the iterations of loop '{1}'", queue.name, loop.var);
  }
  loop.kind = kind;
  loop.axis = axis;
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), make_stmt(std::move(loop)));
  assign_owners(out, target);
  assign_queue_owners(out);
  return out;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::VirtualThread& s,
                            const Target* target) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  const std::optional<int64_t> extent = as_const(loop.extent);
  if (!extent || *extent > kMaxVirtualThreads)
    return illegal(
        "the extent of loop '{0}' must be a constant of at most {1} to be one of virtual threads",
        s.loop, kMaxVirtualThreads);
  return mark(kernel, path, LoopKind::vthread, "", target);
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::Bind& s, const Target* target) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  const DeviceAxis* axis = target ? target->find_axis(s.axis) : nullptr;
  if (!axis) {
    std::vector<std::string> known;
    for (size_t i = 0; target && i < target->axes.size(); ++i)
      known.push_back(target->axes[i].name);
    return illegal("the target has no axis '{0}': {1}", s.axis, it_has(known));
  }
  const std::optional<int64_t> extent = as_const(loop.extent);
  if (axis->max > 0 && (!extent || *extent > axis->max))
    return illegal("loop '{0}' must have a constant extent of at most {1} to be bound to {2}",
                   s.loop, axis->max, s.axis);
  const auto same = [&](const StmtNode& n) {
    const auto* other = as<stmt::Loop>(n);
    return other && other->axis == s.axis;
  };
  const bool around = std::ranges::any_of(path, [&](const Stmt& n) { return same(*n); });
  if (around || contains(loop.body, same))
    return illegal("another loop of the nest is bound to {0} already", s.axis);
  return mark(kernel, path, LoopKind::bind, s.axis, target);
}

}  // namespace tw::sched
