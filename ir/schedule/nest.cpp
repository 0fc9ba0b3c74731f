// Finds, replaces and simplifies statements for the schedule primitives.
#include "ir/schedule/nest.h"

#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <map>

#include "ir/kernel/accesses.h"

namespace tw::sched {

namespace {

bool find_into(const Stmt& s, const std::function<bool(const StmtNode&)>& matches,
               std::vector<Stmt>& path) {
  const bool listed = !is<stmt::Sequence>(s);
  if (listed) path.push_back(s);
  if (matches(*s)) return true;
  for (const Stmt& child : children(s))
    if (find_into(child, matches, path)) return true;
  if (listed) path.pop_back();
  return false;
}

void visit_loads_in(const Stmt& s, std::vector<Stmt>& scope,
                    const std::function<void(const expr::Load&, std::span<const Stmt>)>& fn) {
  visit_exprs(*s, [&](const Expr& e) {
    visit(e, [&](const Expr& node) {
      if (const auto* load = as<expr::Load>(node)) fn(*load, scope);
    });
  });
  const bool listed = is<stmt::Loop, stmt::If>(s);
  if (listed) scope.push_back(s);
  for (const Stmt& child : children(s)) visit_loads_in(child, scope, fn);
  if (listed) scope.pop_back();
}

Stmt simplify_store(const stmt::Store& store, const Ranges& ranges) {
  stmt::Store out = store;
  for (Expr& index : out.indices) index = simplify(index, ranges);
  out.value = simplify(out.value, ranges);
  if (out.where.defined()) {
    out.where = simplify(out.where, ranges);
    if (is_const(out.where, 1)) out.where = Expr();
  }
  if (out.init.defined()) out.init = simplify(out.init, ranges);
  return make_store(std::move(out));
}

Stmt replace_in(const Stmt& s, const Stmt& old, const Stmt& with) {
  if (s == old) return with ? with : make_sequence({});
  const std::span<const Stmt> before = children(s);
  for (size_t i = 0; i < before.size(); ++i) {
    Stmt child = replace_in(before[i], old, with);
    if (child == before[i]) continue;
    if (!is<stmt::Sequence, stmt::Roles>(s))
      return is_empty(child) ? child : with_body(s, std::move(child));
    std::vector<Stmt> after(before.begin(), before.end());
    after[i] = std::move(child);
    if (is<stmt::Roles>(s)) return with_children(s, std::move(after));
    std::erase_if(after, is_empty);
    return make_sequence(std::move(after));
  }
  return s;
}

}  // namespace

std::vector<Stmt> find_path(const Stmt& root, const std::function<bool(const StmtNode&)>& matches) {
  std::vector<Stmt> path;
  find_into(root, matches, path);
  return path;
}

std::vector<Stmt> find_path(const Stmt& root, const Stmt& s) {
  return find_path(root, [&](const StmtNode& node) { return &node == s.get(); });
}

bool contains(const Stmt& root, const Stmt& s) { return !find_path(root, s).empty(); }
bool contains(const Stmt& root, const std::function<bool(const StmtNode&)>& matches) {
  return !find_path(root, matches).empty();
}

std::string it_has(const std::vector<std::string>& names) {
  constexpr size_t kMost = 24;
  if (names.empty()) return "it has none";
  const std::span<const std::string> shown(names.data(), std::min(names.size(), kMost));
  const size_t others = names.size() - shown.size();
  return "it has " + llvm::join(shown, ", ") +
         (others ? " and " + std::to_string(others) + " others" : "");
}
std::string it_has(const std::vector<LoopRef>& loops) {
  std::vector<std::string> names;
  for (const LoopRef& loop : loops) names.push_back(loop->var);
  return it_has(names);
}
std::string it_has(const std::vector<StoreRef>& stages) {
  std::vector<std::string> names;
  for (const StoreRef& store : stages) names.push_back(store->label);
  return it_has(names);
}

Expected<std::vector<Stmt>> loop_path(const Kernel& kernel, const std::string& var) {
  std::vector<Stmt> path = find_path(kernel.body, [&](const StmtNode& s) {
    const auto* loop = as<stmt::Loop>(s);
    return loop && loop->var == var;
  });
  if (!path.empty()) return path;
  std::vector<std::string> names;
  visit(kernel.body, [&](const Stmt& s) {
    if (const auto* loop = as<stmt::Loop>(s)) names.push_back(loop->var);
  });
  return illegal("the kernel has no loop '{0}': {1}", var, it_has(names));
}

Expected<std::vector<Stmt>> stage_path(const Kernel& kernel, const std::string& label) {
  std::vector<Stmt> path = find_path(kernel.body, [&](const StmtNode& s) {
    const auto* store = as<stmt::Store>(s);
    return store && store->label == label;
  });
  if (!path.empty()) return path;
  return illegal("the kernel has no stage '{0}': {1}", label, it_has(stores_of(kernel.body)));
}

Expected<BufferId> buffer_named(const Kernel& kernel, const std::string& name) {
  if (const std::optional<BufferId> id = kernel.find_buffer(name)) return *id;
  std::vector<std::string> names;
  for (const Buffer& buffer : kernel.buffers) names.push_back(buffer.name);
  return illegal("the kernel has no buffer '{0}': {1}", name, it_has(names));
}

Error check_serial(const stmt::Loop& loop) {
  if (loop.kind == LoopKind::serial) return Error::success();
  return illegal("loop '{0}' already is {1}: split, fuse and mark serial loops only", loop.var,
                 loop_kind_name(loop.kind));
}

Error check_new_loop(const Kernel& kernel, const std::string& name) {
  if (!is_name(name)) return illegal("a new loop cannot be called '{0}'", name);
  if (find_loop(kernel.body, name))
    return illegal("there is a loop '{0}' already: names are unique in a kernel", name);
  if (std::ranges::find(kernel.symbols, name) != kernel.symbols.end())
    return illegal("'{0}' is a symbol of the kernel", name);
  return Error::success();
}

Error check_new_stage(const Kernel& kernel, const std::string& name) {
  if (!is_name(name)) return illegal("a new stage cannot be called '{0}'", name);
  if (kernel.find_buffer(name))
    return illegal("there is a buffer '{0}' already: names are unique in a kernel", name);
  for (const StoreRef& store : stores_of(kernel.body))
    if (store->label == name)
      return illegal("there is a stage '{0}' already: names are unique in a kernel", name);
  return Error::success();
}

void add_range(Ranges& ranges, const stmt::Loop& loop) {
  ranges.insert_or_assign(loop.var, Range{Expr(0), simplify(loop.extent - Expr(1))});
}

void add_ranges(Ranges& ranges, std::span<const Stmt> path) {
  for (const Stmt& s : path)
    if (const auto* loop = as<stmt::Loop>(s)) add_range(ranges, *loop);
}

Ranges ranges_of(const Kernel& kernel, std::span<const Stmt> path) {
  Ranges ranges;
  for (const std::string& symbol : kernel.symbols) ranges.emplace(symbol, symbol_range(symbol));
  add_ranges(ranges, path);
  return ranges;
}

std::span<const Stmt> statements(const Stmt& body) {
  return is<stmt::Sequence>(body) ? children(body) : std::span(&body, 1);
}

Stmt simplify_tree(const Stmt& s, Ranges ranges) {
  const auto simplify_token = [&](auto token) {
    if (token.index.defined()) token.index = simplify(token.index, ranges);
    return make_stmt(std::move(token));
  };
  return match(
      s,
      [&](const stmt::Sequence& sequence) {
        std::vector<Stmt> body;
        for (const Stmt& child : sequence.body)
          if (Stmt kept = simplify_tree(child, ranges); !is_empty(kept))
            body.push_back(std::move(kept));
        return make_sequence(std::move(body));
      },
      [&](stmt::Loop loop) {
        add_range(ranges, loop);
        loop.extent = simplify(loop.extent, ranges);
        loop.body = simplify_tree(loop.body, std::move(ranges));
        return is_empty(loop.body) ? loop.body : make_stmt(std::move(loop));
      },
      [&](stmt::If guard) {
        guard.condition = simplify(guard.condition, ranges);
        if (is_const(guard.condition, 0)) return make_sequence({});
        guard.body = simplify_tree(guard.body, std::move(ranges));
        const bool bare = is_empty(guard.body) || is_const(guard.condition, 1);
        return bare ? guard.body : make_stmt(std::move(guard));
      },
      [&](const stmt::Block& block) {
        Stmt body = simplify_tree(block.body, ranges);
        return is_empty(body) ? body : with_body(s, body);
      },
      [&](const stmt::Roles& roles) {
        std::vector<Stmt> parts;
        for (const Stmt& part : roles.parts) parts.push_back(simplify_tree(part, ranges));
        return std::ranges::all_of(parts, is_empty) ? make_sequence({})
                                                    : with_children(s, std::move(parts));
      },
      [&](const stmt::Signal& signal) { return simplify_token(signal); },
      [&](const stmt::Wait& wait) { return simplify_token(wait); },
      [&](stmt::Prefetch prefetch) {
        for (Expr& index : prefetch.indices) index = simplify(index, ranges);
        return make_stmt(std::move(prefetch));
      },
      [&](const stmt::Barrier&) { return s; },
      [&](const stmt::Store& store) { return simplify_store(store, ranges); });
}

Stmt replace(const Stmt& root, const Stmt& old, const Stmt& with) {
  return replace_in(root, old, with);
}

Kernel with_replaced(const Kernel& kernel, std::span<const Stmt> path, const Stmt& with) {
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(),
                     simplify_tree(with, ranges_of(kernel, path.first(path.size() - 1))));
  return out;
}

void visit_loads(const Stmt& root,
                 const std::function<void(const expr::Load&, std::span<const Stmt>)>& fn) {
  std::vector<Stmt> scope;
  visit_loads_in(root, scope, fn);
}

bool has_load(const Expr& e) {
  bool found = false;
  if (e.defined()) visit(e, [&](const Expr& node) { found |= is<expr::Load>(node); });
  return found;
}

bool reads(const Expr& e, BufferId buffer) {
  bool found = false;
  if (e.defined())
    visit(e, [&](const Expr& node) {
      const auto* load = as<expr::Load>(node);
      found |= load && load->buffer == buffer;
    });
  return found;
}

bool reads(const Stmt& root, BufferId buffer) {
  bool found = false;
  visit_loads(
      root, [&](const expr::Load& load, std::span<const Stmt>) { found |= load.buffer == buffer; });
  return found;
}

bool writes(const Stmt& root, BufferId buffer) {
  return contains(root, [&](const StmtNode& s) {
    const auto* store = as<stmt::Store>(s);
    return store && store->buffer == buffer;
  });
}

Stmt map_accesses(const Stmt& root, BufferId buffer,
                  const std::function<std::vector<Expr>(const std::vector<Expr>&)>& fn) {
  return rewrite_accesses(root, [&](BufferId own, const std::vector<Expr>& indices) {
    return own == buffer ? std::optional<BufferAccess>({buffer, fn(indices)}) : std::nullopt;
  });
}

Stmt with_condition(const Stmt& body, const Expr& condition) {
  if (const auto* block = as<stmt::Block>(body); block && !block->intrinsic.empty())
    return make_if(condition, body);
  if (const auto* found = as<stmt::Store>(body)) {
    stmt::Store store = *found;
    store.where = logical_and(condition, store.where);
    return make_store(std::move(store));
  }
  std::vector<Stmt> guarded;
  for (const Stmt& child : children(body)) guarded.push_back(with_condition(child, condition));
  return guarded.empty() ? body : with_children(body, std::move(guarded));
}

Expr filled(const Expr& inside, const Expr& value, const Expr& filling, const Ranges& ranges) {
  const auto* choice = as<expr::Select>(value);
  // A load in the condition may not exist where `inside` fails.
  const bool joins = choice && equal(choice->otherwise, filling) && !has_load(choice->condition);
  const Expr condition = simplify(joins ? logical_and(choice->condition, inside) : inside, ranges);
  const Expr& there = joins ? choice->then : value;
  return is_const(condition, 1) ? there : select(condition, there, filling);
}

Stmt without_stale_prefetches(const Kernel& kernel, const Stmt& root) {
  return rewrite(root, [&](const Stmt& s) -> Stmt {
    const auto* prefetch = as<stmt::Prefetch>(s);
    const bool stale = prefetch &&
                       prefetch->indices.size() != kernel.buffer(prefetch->buffer).shape.size();
    return stale ? make_sequence({}) : nullptr;
  });
}

size_t statements_around(std::span<const Stmt> path) {
  const size_t own = own_statement(path);
  size_t count = 0;
  for (; count + 1 < path.size(); ++count) {
    const auto* loop = as<stmt::Loop>(path[count]);
    const bool scan = loop && loop->role == AxisRole::scan,
               shared = count < own &&
                        (loop ? loop->role == AxisRole::spatial : is<stmt::If>(path[count]));
    if (!(scan || shared) || (loop && loop->kind != LoopKind::serial)) break;
  }
  return count;
}

Expected<LoweredStage> lowered_stage(const Kernel& kernel, const std::string& label, bool inside) {
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, label));
  LoweredStage stage;
  const size_t first = inside ? statements_around(path) : 0;
  stage.around.assign(path.begin(), path.begin() + static_cast<ptrdiff_t>(first));
  stage.nest = path[first];
  stage.store = StoreRef(path.back());
  if (stage.store->async)
    return illegal(
        "the copies of stage '{0}' are asynchronous, with a wait where it stands; do this step "
        "before",
        label);
  for (size_t i = first; i + 1 < path.size(); ++i) {
    const auto* loop = as<stmt::Loop>(path[i]);
    if (!loop || loop->kind != LoopKind::serial || loop->body != path[i + 1])
      return illegal(
          "the nest of stage '{0}' is not as lowered any more (a perfect nest of serial loops); do "
          "this step before others on it",
          label);
    if (loop->role == AxisRole::scan)
      return illegal("stage '{0}' has the scan loop '{1}'", label, loop->var);
    (loop->role == AxisRole::spatial ? stage.spatial : stage.reduce).emplace_back(path[i]);
  }
  std::vector<bool> used(stage.spatial.size());
  for (const Expr& index : stage.store->indices) {
    int axis = -1;
    for (size_t a = 0; a < stage.spatial.size(); ++a)
      if (!used[a] && is_var(index, stage.spatial[a]->var)) axis = static_cast<int>(a);
    if (axis >= 0) used[static_cast<size_t>(axis)] = true;
    if (axis < 0 && !is_const(index, 0))
      return illegal(
          "stage '{0}' does not store at its loop variables: its nest is not as lowered any more",
          label);
    stage.loop_of_dim.push_back(axis);
  }
  for (size_t a = 0; a < stage.spatial.size(); ++a)
    if (!used[a] && !is_const(stage.spatial[a]->extent, 1))
      return illegal(
          "loop '{0}' of stage '{1}' is no index of its store: its nest is not as lowered any more",
          stage.spatial[a]->var, label);
  return stage;
}

size_t scans_around(std::span<const Stmt> path, const Expr& e,
                    const std::vector<Expr>& run_through) {
  const size_t all = statements_around(path);
  size_t count = 0;
  for (size_t i = 0; e.defined() && i < all; ++i) {
    const auto* loop = as<stmt::Loop>(path[i]);
    if (!loop) continue;
    const auto uses = [&](const Expr& index) { return uses_var(index, loop->var); };
    if (loop->role != AxisRole::scan || (uses(e) && std::ranges::none_of(run_through, uses)))
      count = i + 1;
    visit(e, [&](const Expr& n) {
      const auto* load = as<expr::Load>(n);
      if (load && writes(path[i], load->buffer)) count = i + 1;
    });
  }
  while (count < all && is<stmt::If>(path[count])) ++count;
  return count;
}

bool read_behind_only(const Kernel& kernel, const LoweredStage& stage) {
  const BufferId id = stage.store->buffer;
  const Stmt& around = stage.around.empty() ? kernel.body : children(stage.around.back())[0];
  if (!stage.around.empty() && reads(replace(kernel.body, stage.around.back(), nullptr), id))
    return false;
  for (const Stmt& s : statements(around)) {
    if (s == stage.nest) break;
    if (reads(s, id)) return false;
  }
  return !reads(stage.nest, id);
}

// True: in any one iteration of the loops around the stage, the store writes no place that the
// stage reads. Some index differs by a constant: row t + 1 is written, row t is read. Loops other
// than those have different variables in the two.
static bool reads_elsewhere(const Kernel& kernel, const LoweredStage& stage,
                            const StoreRef& store) {
  if (stage.around.empty() || !contains(stage.around.back(), store)) return false;
  const Ranges ranges = ranges_of(kernel, stage.around);
  bool apart = true;
  visit_loads(stage.nest, [&](const expr::Load& load, std::span<const Stmt>) {
    if (load.buffer != store->buffer) return;
    bool differs = false;
    for (size_t d = 0; d < load.indices.size() && !differs; ++d) {
      const std::optional<int64_t> distance = as_const(
          simplify(load.indices[d] - store->indices[d], ranges));
      differs = distance && *distance != 0;
    }
    apart &= differs;
  });
  return apart;
}

Error check_alone(const Kernel& kernel, const LoweredStage& stage) {
  for (const StoreRef& store : stores_of(kernel.body))
    if (store.stmt() != stage.store.stmt() && store->buffer == stage.store->buffer)
      return illegal("stage '{0}' writes '{1}' too, so '{2}' must stay where it is", store->label,
                     kernel.buffer(store->buffer).name, stage.store->label);
  if (reads(stage.nest, stage.store->buffer))
    return illegal("stage '{0}' reads its own buffer", stage.store->label);
  return Error::success();
}

Error check_movable(const Kernel& kernel, const LoweredStage& stage) {
  TW_TRY(check_alone(kernel, stage));
  bool after = false;
  for (const StoreRef& store : stores_of(kernel.body)) {
    if (after && reads(stage.nest, store->buffer) && !reads_elsewhere(kernel, stage, store))
      return illegal("stage '{0}' reads '{1}', which stage '{2}' changes later", stage.store->label,
                     kernel.buffer(store->buffer).name, store->label);
    after |= store.stmt() == stage.store.stmt();
  }
  return Error::success();
}

Error check_own_slots(const Kernel& kernel, const stmt::Loop& loop) {
  Error error = Error::success();
  for (const StoreRef& store : stores_of(loop.body)) {
    if (kernel.buffer(store->buffer).role != BufferRole::temp) continue;
    visit_loads(loop.body, [&](const expr::Load& read, std::span<const Stmt>) {
      if (error || read.buffer != store->buffer) return;
      for (size_t dim = 0; dim < read.indices.size() && !error; ++dim)
        if (uses_var(store->indices[dim], loop.var) && uses_var(read.indices[dim], loop.var) &&
            !equal(simplify(store->indices[dim]), simplify(read.indices[dim])))
          error = illegal("iterations of loop '{0}' read what others have stored in '{1}'",
                          loop.var, kernel.buffer(read.buffer).name);
    });
  }
  return error;
}

bool is_token(const StmtNode& s) { return is<stmt::Signal, stmt::Wait>(s); }

std::string queue_of(const StmtNode& s) {
  if (const auto* signal = as<stmt::Signal>(s)) return signal->queue;
  const auto* wait = as<stmt::Wait>(s);
  return wait ? wait->queue : "";
}

bool waits_for(const Stmt& root, const std::string& queue) {
  return contains(root, [&](const StmtNode& s) {
    const auto* wait = as<stmt::Wait>(s);
    return wait && wait->queue == queue;
  });
}

Error check_no_tokens(const Kernel& kernel, const stmt::Loop& loop) {
  std::map<std::string, int> elsewhere;  // signals and waits outside the loop, by queue
  visit(kernel.body, [&](const Stmt& s) { elsewhere[queue_of(*s)] += is_token(*s); });
  visit(loop.body, [&](const Stmt& s) { elsewhere[queue_of(*s)] -= is_token(*s); });
  std::string queue;
  visit(loop.body, [&](const Stmt& s) {
    if (is_token(*s) && elsewhere[queue_of(*s)] > 0) queue = queue_of(*s);
  });
  return queue.empty() ? Error::success()
                       : illegal(
                             "the iterations of loop '{0}' exchange tokens '{1}' with others, "
                             "in their given order",
                             loop.var, queue);
}

}  // namespace tw::sched
