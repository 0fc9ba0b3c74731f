// Rules that every kernel must obey after every step, whatever the primitive. Checking the result
// keeps primitives small, and no order of steps escapes.
#include <algorithm>
#include <set>

#include "ir/kernel/stack_limits.h"
#include "ir/schedule/owners.h"
#include "ir/schedule/product_form.h"

namespace tw::sched {

namespace {

bool is_small(const Buffer& buffer) {  // true: it lives on the stack or in registers
  return buffer.role == BufferRole::temp &&
         (buffer.scope == "stack" || buffer.scope == "register" || buffer.scope == kTileScope);
}

bool is_private(const Buffer& buffer) {
  return is_small(buffer) || (buffer.role == BufferRole::temp && buffer.scope == "thread");
}

bool uses_var_in_indices(const stmt::Store& store, const std::string& var) {
  return std::ranges::any_of(store.indices,
                             [&](const Expr& index) { return uses_var(index, var); });
}

Error check_vector(const stmt::Loop& loop) {
  const std::vector<Stmt> inner = find_path(loop.body,
                                            [](const StmtNode& s) { return is<stmt::Loop>(s); });
  if (!inner.empty())
    return illegal("vector loop '{0}' holds loop '{1}': only an innermost loop can be vectorized",
                   loop.var, get<stmt::Loop>(inner.back()).var);
  const bool other = contains(loop.body, [](const StmtNode& s) {
    return is<stmt::Roles, stmt::Signal, stmt::Wait, stmt::Barrier>(s);
  });
  if (other)
    return illegal("vector loop '{0}' holds tokens or roles, which have no lanes", loop.var);
  if (loop.role == AxisRole::scan)
    return illegal("loop '{0}' is a scan: its iterations run in order, not as lanes", loop.var);
  if (is_const(loop.extent, 1)) return Error::success();
  for (const StoreRef& store : stores_of(loop.body)) {
    const bool combined = loop.role == AxisRole::reduce && store->combiner != Combiner::none;
    if (!combined && !uses_var_in_indices(*store, loop.var))
      return illegal("all lanes of vector loop '{0}' store to one place in stage '{1}'", loop.var,
                     store->label);
  }
  return Error::success();
}

// Requires that temps written in a parallel iteration belong to it alone, and that private temps
// are not used outside.
Error check_parallel(const Kernel& kernel, const LoopRef& loop, bool outermost) {
  const std::string& v = loop->var;
  if (loop->role != AxisRole::spatial)
    return illegal("loop '{0}' is a {1} loop: only spatial loops can be parallel", v,
                   axis_role_name(loop->role));
  if (!outermost)
    return illegal(
        "loop '{0}' is inside another loop: only the outermost loop of a nest can be parallel "
        "(scan loops around it do not count)",
        v);
  const std::vector<Stmt> nested = find_path(loop->body, [](const StmtNode& s) {
    const auto* inner = as<stmt::Loop>(s);
    return inner && inner->kind == LoopKind::parallel;
  });
  if (!nested.empty())
    return illegal("parallel loop '{0}' holds another one, '{1}'", v,
                   get<stmt::Loop>(nested.back()).var);
  for (const StoreRef& store : stores_of(loop->body)) {
    const Buffer& buffer = kernel.buffer(store->buffer);
    if (is_private(buffer)) continue;
    if (!is_const(loop->extent, 1) && !uses_var_in_indices(*store, v))
      return illegal(
          "every iteration of parallel loop '{0}' writes '{1}' (scope {2}) in stage '{3}': compute "
          "it at an inner loop or set its scope to stack, thread or register",
          v, buffer.name, buffer.scope, store->label);
    if (overlaps(*store, v) && (store->combiner != Combiner::none || reads(loop, store->buffer)))
      return illegal(
          "iterations of parallel loop '{0}' overlap (shifted split) and read back '{1}'", v,
          buffer.name);
  }
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const BufferId id{static_cast<int32_t>(i)};
    if (!is_private(kernel.buffers[i]) || !(reads(loop, id) || writes(loop, id))) continue;
    const Stmt rest = replace(kernel.body, loop, nullptr);
    if (reads(rest, id) || writes(rest, id))
      return illegal(
          "'{0}' has the private scope {1}, but is used inside and outside of parallel loop '{2}'",
          kernel.buffers[i].name, kernel.buffers[i].scope, v);
  }
  return Error::success();
}

// True: a ring slot is counted over iterations that overlap because of a shifted split.
bool goes_round(const Expr& index, const std::string& var) {
  bool found = false;
  visit(index, [&](const Expr& e) {
    if (!as_binary(e, BinaryOp::floor_mod)) return;
    visit(e, [&](const Expr& n) { found |= as_binary(n, BinaryOp::min) && uses_var(n, var); });
  });
  return found;
}

// Refuses overlapping iterations of a ring that is filled ahead: its slots hold what later
// iterations read, and an iteration that runs twice does not find its own values again.
Error check_rings(const Kernel& kernel, const LoopRef& loop) {
  const Stmt outside = replace(kernel.body, loop, nullptr);
  for (const StoreRef& store : stores_of(loop->body)) {
    if (!writes(outside, store->buffer)) continue;
    bool ahead = false;
    visit_loads(loop->body, [&](const expr::Load& load, std::span<const Stmt>) {
      for (size_t dim = 0; load.buffer == store->buffer && dim < load.indices.size(); ++dim)
        ahead |= goes_round(store->indices[dim], loop->var) &&
                 !equal(load.indices[dim], store->indices[dim]);
    });
    if (ahead)
      return illegal(
          "blocks of loop '{0}' overlap (shifted split), and stage '{1}' fills the ring '{2}' "
          "ahead "
          "of them",
          loop->var, store->label, kernel.buffer(store->buffer).name);
  }
  return Error::success();
}

// Overlapping iterations compute their common points twice. The second time must give the same
// values.
Error check_overlap(const Kernel& kernel, const LoopRef& loop,
                    const std::vector<LoopRef>& enclosing) {
  const std::vector<StoreRef> stores = stores_of(loop->body);
  if (std::ranges::none_of(stores,
                           [&](const StoreRef& store) { return overlaps(*store, loop->var); }))
    return Error::success();
  TW_TRY(check_rings(kernel, loop));
  const bool in_reduce = std::ranges::any_of(
      enclosing, [](const LoopRef& around) { return around->role == AxisRole::reduce; });
  // Buffers that some store overwrites regardless of their contents, and buffers that any store
  // writes
  std::set<int32_t> replaced, written;
  for (size_t i = 0; i < stores.size(); ++i) {
    const stmt::Store& store = *stores[i];
    bool overwritten = store.combiner == Combiner::none;
    if (store.init.defined()) overwritten = !in_reduce;
    overwritten |= replaced.contains(store.buffer.index);
    if (store.combiner == Combiner::none && !store.where.defined())
      replaced.insert(store.buffer.index);
    if (!overwritten)
      return illegal(
          "blocks of loop '{0}' overlap (shifted split), and stage '{1}' would add to '{2}' twice: "
          "all its reduce loops and its init must be inside '{0}'",
          loop->var, store.label, kernel.buffer(store.buffer).name);
    if (!written.insert(store.buffer.index).second) continue;
    for (size_t j = 0; j <= i; ++j) {
      if (reads(stores[j], store.buffer))
        return illegal(
            "blocks of loop '{0}' overlap (shifted split), and stage '{1}' reads '{2}' before it "
            "is written",
            loop->var, stores[j]->label, kernel.buffer(store.buffer).name);
    }
  }
  return Error::success();
}

Error check_tree(const Kernel& kernel, const Stmt& s, std::vector<LoopRef>& enclosing) {
  if (is<stmt::Loop>(s)) {
    const LoopRef loop(s);
    if (as_const(loop->extent).value_or(0) > kMostExtentOfKernels)
      return illegal("loop '{0}' has more than {1} iterations", loop->var, kMostExtentOfKernels);
    if (loop->kind == LoopKind::vector) TW_TRY(check_vector(*loop));
    const auto in_order = [](const LoopRef& around) {
      return around->role == AxisRole::scan && around->kind == LoopKind::serial;
    };
    if (loop->kind == LoopKind::parallel)
      TW_TRY(check_parallel(kernel, loop, std::ranges::all_of(enclosing, in_order)));
    if (is_concurrent(loop->kind)) TW_TRY(check_concurrent(kernel, loop));
    TW_TRY(check_overlap(kernel, loop, enclosing));
    enclosing.push_back(loop);
  }
  for (const Stmt& child : children(s)) TW_TRY(check_tree(kernel, child, enclosing));
  if (is<stmt::Loop>(s)) enclosing.pop_back();
  return Error::success();
}

Error check_constant_indices(const Kernel& kernel, BufferId buffer, std::span<const Expr> indices,
                             std::span<const Stmt> scope) {
  Error error = Error::success();
  for (const Expr& index : indices) {
    visit(index, [&](const Expr& e) {
      if (error) return;
      const auto* variable = as<expr::Var>(e);
      const auto expands = [&](const Stmt& s) {
        const auto* loop = as<stmt::Loop>(s);
        return loop && loop->var == variable->name &&
               (loop->kind == LoopKind::unroll || loop->kind == LoopKind::vector);
      };
      if (is<expr::Load>(e) || (variable && std::ranges::none_of(scope, expands)))
        error = illegal(
            "register temp '{0}' has the index '{1}', which '{2}' keeps from being constant: "
            "unroll or vectorize its loop",
            kernel.buffer(buffer).name,
            to_string(index, [&](BufferId id) { return kernel.buffer(id).name; }),
            variable ? variable->name : "a load");
    });
    if (error) return error;
  }
  return error;
}

// A nest that fills a temp of scope constant runs apart from the rest, with a constant alone.
Error check_constant_stage(const Kernel& kernel, BufferId temp) {
  const std::string& name = kernel.buffer(temp).name;
  std::set<int32_t> sources;
  for (const Stmt& s : statements(kernel.body)) {
    if (!writes(s, temp)) continue;
    for (const StoreRef& store : stores_of(s))
      if (store->buffer != temp)
        return illegal("'{0}' has scope constant, but stage '{1}' is in one nest with it", name,
                       store->label);
    for (size_t i = 0; i < kernel.buffers.size(); ++i)
      if (const BufferId id{static_cast<int32_t>(i)}; id != temp && reads(s, id))
        sources.insert(id.index);
    for (const std::string& symbol : kernel.symbols)
      if (contains(s, [&](const StmtNode& inner) {
            bool found = false;
            visit_exprs(inner, [&](const Expr& e) { found |= uses_var(e, symbol); });
            return found;
          }))
        return illegal("'{0}' has scope constant, but depends on symbol '{1}'", name, symbol);
  }
  const auto is_constant = [&](int32_t source) {
    return kernel.buffer(BufferId{source}).role == BufferRole::constant;
  };
  if (sources.size() > 1 || !std::ranges::all_of(sources, is_constant))
    return illegal("'{0}' has scope constant, but is not made from one constant alone", name);
  return Error::success();
}

}  // namespace

bool overlaps(const stmt::Store& store, const std::string& var) {
  bool found = false;
  for (const Expr& index : store.indices)
    visit(index, [&](const Expr& e) { found |= as_binary(e, BinaryOp::min) && uses_var(e, var); });
  return found;
}

Error check_rules(const Kernel& kernel) {
  for (const Buffer& buffer : kernel.buffers)
    for (const Expr& extent : buffer.shape)
      if (as_const(extent).value_or(0) > kMostExtentOfKernels)
        return illegal("'{0}' has the extent {1}, more than {2}", buffer.name, to_string(extent),
                       kMostExtentOfKernels);
  std::vector<LoopRef> enclosing;
  return check_tree(kernel, kernel.body, enclosing);
}

std::optional<int64_t> constant_bytes(const Buffer& buffer) {
  int64_t bytes = dtype_bytes(buffer.dtype);
  for (const Expr& dim : buffer.shape) {
    const std::optional<int64_t> extent = as_const(dim);
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

// True: the buffer belongs to an iteration that is bound to an axis. The device's threads share its
// elements out, and what one may have is checked for a launch.
static bool is_of_device(const Kernel& kernel, const Buffer& buffer) {
  const LoopRef owner = buffer.per.empty() ? LoopRef() : find_loop(kernel.body, buffer.per);
  return owner && owner->kind == LoopKind::bind;
}

Error check_scopes(const Kernel& kernel) {
  int64_t stack = 0;
  for (const Buffer& buffer : kernel.buffers) {
    if (!is_small(buffer)) continue;
    const std::optional<int64_t> bytes = constant_bytes(buffer);
    if (!bytes)
      return illegal(
          "'{0}' has scope {1}, but its shape is not constant: compute it in a loop that reads a "
          "constant part of it",
          buffer.name, buffer.scope);
    if (*bytes > kMaxStackBufferBytes)
      return illegal(
          "'{0}' has {1} bytes, more than the {2} allowed in scope {3}: compute it in a loop "
          "further inside",
          buffer.name, *bytes, kMaxStackBufferBytes, buffer.scope);
    if (buffer.scope == "stack" && !is_of_device(kernel, buffer)) stack += *bytes;
  }
  if (stack > kMaxStackBytes)
    return illegal(
        "the buffers of scope stack have {0} bytes, more than the {1} allowed together: give the "
        "large ones scope thread",
        stack, kMaxStackBytes);
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    if (kernel.buffers[i].role == BufferRole::temp && kernel.buffers[i].scope == kConstantScope)
      TW_TRY(check_constant_stage(kernel, BufferId{static_cast<int32_t>(i)}));
  const auto in_registers = [&](BufferId id) { return kernel.buffer(id).scope == "register"; };
  Error error = Error::success();
  visit_loads(kernel.body, [&](const expr::Load& load, std::span<const Stmt> scope) {
    if (!error && in_registers(load.buffer))
      error = check_constant_indices(kernel, load.buffer, load.indices, scope);
  });
  if (error) return error;
  visit(kernel.body, [&](const Stmt& s) {
    const auto* prefetch = as<stmt::Prefetch>(s);
    if (!error && prefetch && in_registers(prefetch->buffer))
      error = illegal("the register temp '{0}' is prefetched, but lies in no memory",
                      kernel.buffer(prefetch->buffer).name);
  });
  if (error) return error;
  for (const StoreRef& store : stores_of(kernel.body)) {
    if (!in_registers(store->buffer)) continue;
    const std::vector<Stmt> scope = find_path(kernel.body, store);
    TW_TRY(check_constant_indices(kernel, store->buffer, store->indices, scope));
  }
  return error;
}

}  // namespace tw::sched
