#include "ir/schedule/owners.h"

#include <algorithm>

#include "ir/schedule/product_form.h"
#include "ir/target.h"

namespace tw::sched {

namespace {

bool uses(const StmtNode& s, BufferId buffer) {
  const auto* store = as<stmt::Store>(s);
  const auto* prefetch = as<stmt::Prefetch>(s);
  bool found = (store && store->buffer == buffer) || (prefetch && prefetch->buffer == buffer);
  visit_exprs(s, [&](const Expr& e) {
    visit(e, [&](const Expr& n) {
      const auto* load = as<expr::Load>(n);
      found |= load && load->buffer == buffer;
    });
  });
  return found;
}

void add_use(const Stmt& s, const std::function<bool(const StmtNode&)>& is_use,
             std::vector<Stmt>& path, std::optional<std::vector<Stmt>>& common) {
  if (is_use(*s)) {
    if (!common) common = path;
    const auto [end, other] = std::ranges::mismatch(*common, path);
    common->erase(end, common->end());
  }
  const bool listed = !is<stmt::Sequence>(s);
  if (listed) path.push_back(s);
  for (const Stmt& child : children(s)) add_use(child, is_use, path, common);
  if (listed) path.pop_back();
}

bool may_own(const stmt::Loop& loop, const Buffer& buffer, const Target* target) {
  if (!is_concurrent(loop.kind)) return false;
  if (buffer.scope == "stack" || buffer.scope == "register" || buffer.scope == kTileScope)
    return true;
  if (loop.kind == LoopKind::vthread) return buffer.scope != "global" && buffer.scope != "thread";
  const DeviceAxis* axis = target ? target->find_axis(loop.axis) : nullptr;
  const MemoryScope* scope = target ? target->find_scope(buffer.scope) : nullptr;
  return axis && scope && axis->level == scope->level;
}

bool owned_inside(const Buffer& buffer, const Stmt& loop) {
  return !buffer.per.empty() && find_loop(loop, buffer.per);
}

// True: for each value of the loop's variable both indices are in a window of their own.
bool in_one_window(const Kernel& kernel, const LoopRef& loop, const Expr& a, const Expr& b) {
  if (equal(a, b)) return true;
  const auto one = linear_in(a, loop->var), two = linear_in(b, loop->var);
  if (!one || !two || one->coefficient != two->coefficient || one->coefficient < 1) return false;
  Ranges over;
  visit(loop->body, [&](const Stmt& s) {
    if (const auto* inner = as<stmt::Loop>(s)) add_range(over, *inner);
  });
  const Ranges others = ranges_of(kernel, find_path(kernel.body, loop));
  const auto first = interval_over(one->rest, over, others),
             second = interval_over(two->rest, over, others);
  if (!first || !second) return false;
  const auto near = [&](const Interval& high, const Interval& low) {
    return can_prove(lt(high.max - low.min, Expr(one->coefficient)), others);
  };
  return near(*first, *first) && near(*second, *second) && near(*first, *second) &&
         near(*second, *first);
}

}  // namespace

std::vector<Stmt> common_path(const Kernel& kernel,
                              const std::function<bool(const StmtNode&)>& is_use) {
  std::optional<std::vector<Stmt>> common;
  std::vector<Stmt> path;
  add_use(kernel.body, is_use, path, common);
  return common.value_or(std::vector<Stmt>());
}

void assign_owners(Kernel& kernel, const Target* target) {
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    Buffer& buffer = kernel.buffers[b];
    if (buffer.role != BufferRole::temp) continue;
    for (const Stmt& s : common_path(
             kernel, [&](const StmtNode& n) { return uses(n, BufferId{static_cast<int32_t>(b)}); }))
      if (const auto* loop = as<stmt::Loop>(s); loop && may_own(*loop, buffer, target))
        buffer.per = loop->var;
  }
}

void assign_queue_owners(Kernel& kernel) {
  for (TokenQueue& queue : kernel.queues) {
    const auto is_use = [&](const StmtNode& n) { return queue_of(n) == queue.name; };
    queue.per = innermost_concurrent(common_path(kernel, is_use));
  }
}

std::string innermost_concurrent(std::span<const Stmt> path) {
  std::string found;
  for (const Stmt& s : path)
    if (const auto* loop = as<stmt::Loop>(s); loop && is_concurrent(loop->kind)) found = loop->var;
  return found;
}

Error check_concurrent(const Kernel& kernel, const LoopRef& loop) {
  if (is_const(loop->extent, 1)) return Error::success();
  const std::string& v = loop->var;
  for (const StoreRef& store : stores_of(loop->body)) {
    const Buffer& buffer = kernel.buffer(store->buffer);
    if (owned_inside(buffer, loop)) continue;
    const auto own = std::ranges::find_if(store->indices,
                                          [&](const Expr& e) { return uses_var(e, v); });
    if (own == store->indices.end())
      return illegal(
          "every iteration of the {0} loop '{1}' writes '{2}' (scope {3}) in stage '{4}'",
          loop_kind_name(loop->kind), v, buffer.name, buffer.scope, store->label);
    bool overlapping = overlaps(*store, v);
    visit(loop->body, [&](const Stmt& s) {
      const auto* inner = as<stmt::Loop>(s);
      overlapping |= inner && overlaps(*store, inner->var);
    });
    if (overlapping)
      return illegal("iterations of the {0} loop '{1}' overlap (shifted split) in stage '{2}'",
                     loop_kind_name(loop->kind), v, store->label);
    const size_t dim = static_cast<size_t>(own - store->indices.begin());
    bool other = false;
    visit_loads(loop->body, [&](const expr::Load& load, std::span<const Stmt>) {
      other |= load.buffer == store->buffer && !equal(load.indices[dim], *own);
    });
    for (const StoreRef& again : stores_of(loop->body))
      if (again->buffer == store->buffer && !in_one_window(kernel, loop, *own, again->indices[dim]))
        return illegal("iterations of the {0} loop '{1}' write the same places of '{2}'",
                       loop_kind_name(loop->kind), v, buffer.name);
    if (other)
      return illegal("iterations of the {0} loop '{1}' read what others write of '{2}'",
                     loop_kind_name(loop->kind), v, buffer.name);
  }
  return Error::success();
}

}  // namespace tw::sched
