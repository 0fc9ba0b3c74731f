// Finding, replacing and simplifying statements for the schedule primitives.
#include "ir/schedule/nest.h"

#include <algorithm>
#include <map>

namespace tw::sched {

namespace {

bool find_into(const Stmt& s, const std::function<bool(const StmtNode&)>& matches,
               std::vector<Stmt>& path) {
  const bool listed = s->kind != StmtKind::sequence;
  if (listed) path.push_back(s);
  if (matches(*s)) return true;
  for (const Stmt& child : s->body)
    if (find_into(child, matches, path)) return true;
  if (listed) path.pop_back();
  return false;
}

void visit_loads_in(const Stmt& s, std::vector<Stmt>& scope,
                    const std::function<void(const ExprNode&, std::span<const Stmt>)>& fn) {
  visit_exprs(*s, [&](const Expr& e) {
    visit(e, [&](const Expr& node) {
      if (node->kind == ExprKind::load) fn(*node, scope);
    });
  });
  const bool listed = s->kind == StmtKind::loop || s->kind == StmtKind::if_then;
  if (listed) scope.push_back(s);
  for (const Stmt& child : s->body) visit_loads_in(child, scope, fn);
  if (listed) scope.pop_back();
}

Stmt simplify_store(const StmtNode& store, const Ranges& ranges) {
  StmtNode out = store;
  for (Expr& index : out.indices) index = simplify(index, ranges);
  out.value = simplify(out.value, ranges);
  if (out.where.defined()) {
    out.where = simplify(out.where, ranges);
    if (is_const(out.where, 1)) out.where = Expr();
  }
  if (out.init.defined()) out.init = simplify(out.init, ranges);
  return make_store(std::move(out));
}

bool empty(const Stmt& s) { return s->kind == StmtKind::sequence && s->body.empty(); }

Stmt replace_in(const Stmt& s, const Stmt& old, const Stmt& with) {
  if (s == old) return with ? with : make_sequence({});
  for (size_t i = 0; i < s->body.size(); ++i) {
    Stmt child = replace_in(s->body[i], old, with);
    if (child == s->body[i]) continue;
    if (s->kind != StmtKind::sequence && s->kind != StmtKind::roles)
      return empty(child) ? child : with_body(*s, std::move(child));
    StmtNode node = *s;
    node.body[i] = std::move(child);
    if (s->kind == StmtKind::roles) return make_stmt(std::move(node));
    std::erase_if(node.body, empty);
    return make_sequence(std::move(node.body));
  }
  return s;
}

}  // namespace

std::vector<Stmt> find_path(const Stmt& root, const std::function<bool(const StmtNode&)>& matches) {
  std::vector<Stmt> path;
  find_into(root, matches, path);
  return path;
}

Expected<std::vector<Stmt>> loop_path(const Kernel& kernel, const std::string& var) {
  std::vector<Stmt> path = find_path(
      kernel.body, [&](const StmtNode& s) { return s.kind == StmtKind::loop && s.var == var; });
  if (path.empty()) return illegal("the kernel has no loop '{0}'", var);
  return path;
}

Expected<std::vector<Stmt>> stage_path(const Kernel& kernel, const std::string& label) {
  std::vector<Stmt> path = find_path(kernel.body, [&](const StmtNode& s) {
    return s.kind == StmtKind::store && s.label == label;
  });
  if (path.empty()) return illegal("the kernel has no stage '{0}'", label);
  return path;
}

Error check_serial(const StmtNode& loop) {
  if (loop.loop_kind == LoopKind::serial) return Error::success();
  return illegal("loop '{0}' already is {1}: split, fuse and mark serial loops only", loop.var,
                 loop_kind_name(loop.loop_kind));
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
  for (const Stmt& store : stores_of(kernel.body))
    if (store->label == name)
      return illegal("there is a stage '{0}' already: names are unique in a kernel", name);
  return Error::success();
}

void add_range(Ranges& ranges, const StmtNode& loop) {
  ranges.insert_or_assign(loop.var, Range{Expr(0), simplify(loop.extent - Expr(1))});
}

Ranges ranges_of(const Kernel& kernel, std::span<const Stmt> path) {
  Ranges ranges;
  for (const std::string& symbol : kernel.symbols) ranges.emplace(symbol, symbol_range(symbol));
  for (const Stmt& s : path)
    if (s->kind == StmtKind::loop) add_range(ranges, *s);
  return ranges;
}

Stmt simplify_tree(const Stmt& s, Ranges ranges) {
  switch (s->kind) {
    case StmtKind::sequence: {
      std::vector<Stmt> body;
      for (const Stmt& child : s->body)
        if (Stmt kept = simplify_tree(child, ranges); !empty(kept)) body.push_back(std::move(kept));
      return make_sequence(std::move(body));
    }
    case StmtKind::loop: {
      add_range(ranges, *s);
      StmtNode loop = *s;
      loop.extent = simplify(s->extent, ranges);
      Stmt body = simplify_tree(s->body[0], std::move(ranges));
      return empty(body) ? body : with_body(loop, std::move(body));
    }
    case StmtKind::if_then: {
      StmtNode guard = *s;
      guard.condition = simplify(s->condition, ranges);
      if (is_const(guard.condition, 0)) return make_sequence({});
      Stmt body = simplify_tree(s->body[0], std::move(ranges));
      return empty(body) || is_const(guard.condition, 1) ? body : with_body(guard, std::move(body));
    }
    case StmtKind::block:
    case StmtKind::roles: {
      StmtNode node = *s;
      for (Stmt& child : node.body) child = simplify_tree(child, ranges);
      return std::ranges::all_of(node.body, empty) ? make_sequence({}) : make_stmt(std::move(node));
    }
    case StmtKind::signal:
    case StmtKind::wait:
    case StmtKind::prefetch: {
      StmtNode node = *s;
      for (Expr& index : node.indices) index = simplify(index, ranges);
      return make_stmt(std::move(node));
    }
    case StmtKind::barrier: return s;
    case StmtKind::store: return simplify_store(*s, ranges);
  }
  TW_UNREACHABLE("bad statement kind");
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

void visit_exprs(const StmtNode& s, const std::function<void(const Expr&)>& fn) {
  if (s.extent.defined()) fn(s.extent);
  if (s.condition.defined()) fn(s.condition);
  for (const Expr& index : s.indices) fn(index);
  if (s.where.defined()) fn(s.where);
  if (s.value.defined()) fn(s.value);
  if (s.init.defined()) fn(s.init);
}

void visit_loads(const Stmt& root,
                 const std::function<void(const ExprNode&, std::span<const Stmt>)>& fn) {
  std::vector<Stmt> scope;
  visit_loads_in(root, scope, fn);
}

bool has_load(const Expr& e) {
  bool found = false;
  if (e.defined()) visit(e, [&](const Expr& node) { found |= node->kind == ExprKind::load; });
  return found;
}

bool reads(const Stmt& root, BufferId buffer) {
  bool found = false;
  visit_loads(root,
              [&](const ExprNode& load, std::span<const Stmt>) { found |= load.buffer == buffer; });
  return found;
}

bool writes(const Stmt& root, BufferId buffer) {
  return !find_path(root, [&](const StmtNode& s) {
            return s.kind == StmtKind::store && s.buffer == buffer;
          }).empty();
}

Stmt map_accesses(const Stmt& root, BufferId buffer,
                  const std::function<std::vector<Expr>(const std::vector<Expr>&)>& fn) {
  const Stmt loads = rewrite_exprs(root, [&](const Expr& whole) {
    return rewrite(whole, [&](const Expr& e) {
      return e->kind == ExprKind::load && e->buffer == buffer ? load(buffer, e->type, fn(e->args))
                                                              : Expr();
    });
  });
  return rewrite(loads, [&](const Stmt& s) -> Stmt {
    if ((s->kind != StmtKind::store && s->kind != StmtKind::prefetch) || s->buffer != buffer)
      return nullptr;
    StmtNode node = *s;
    node.indices = fn(node.indices);
    return make_stmt(std::move(node));
  });
}

Stmt without_stale_prefetches(const Kernel& kernel, const Stmt& root) {
  return rewrite(root, [&](const Stmt& s) -> Stmt {
    return s->kind == StmtKind::prefetch &&
                   s->indices.size() != kernel.buffer(s->buffer).shape.size()
               ? make_sequence({})
               : nullptr;
  });
}

Expected<LoweredStage> lowered_stage(const Kernel& kernel, const std::string& label,
                                     bool in_scans) {
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, label));
  LoweredStage stage;
  size_t first = 0;
  while (in_scans && path[first]->kind == StmtKind::loop && path[first]->role == AxisRole::scan &&
         path[first]->loop_kind == LoopKind::serial)
    stage.scans.push_back(path[first++]);
  stage.nest = path[first];
  stage.store = path.back();
  if (stage.store->async)
    return illegal(
        "the copies of stage '{0}' are asynchronous, with a wait where it stands; do this step "
        "before",
        label);
  for (size_t i = first; i + 1 < path.size(); ++i) {
    const StmtNode& s = *path[i];
    if (s.kind != StmtKind::loop || s.loop_kind != LoopKind::serial || s.body[0] != path[i + 1])
      return illegal(
          "the nest of stage '{0}' is not as lowered any more (a perfect nest of serial loops); do "
          "this step before others on it",
          label);
    if (s.role == AxisRole::scan)
      return illegal("stage '{0}' has the scan loop '{1}'", label, s.var);
    (s.role == AxisRole::spatial ? stage.spatial : stage.reduce).push_back(path[i]);
  }
  std::vector<bool> used(stage.spatial.size());
  for (const Expr& index : stage.store->indices) {
    int axis = -1;
    for (size_t a = 0; a < stage.spatial.size(); ++a)
      if (!used[a] && index->kind == ExprKind::var && index->name == stage.spatial[a]->var)
        axis = static_cast<int>(a);
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

// In any one iteration of the scan loops around the stage, the store writes none of the places that
// the stage reads: some index differs by a constant (row t + 1 is written, row t read). Loops other
// than those scans have different variables there.
static bool reads_elsewhere(const Kernel& kernel, const LoweredStage& stage,
                            const StmtNode& store) {
  if (stage.scans.empty() ||
      find_path(stage.scans.back(), [&](const StmtNode& s) { return &s == &store; }).empty())
    return false;
  const Ranges ranges = ranges_of(kernel, stage.scans);
  bool apart = true;
  visit_loads(stage.nest, [&](const ExprNode& load, std::span<const Stmt>) {
    if (load.buffer != store.buffer) return;
    bool differs = false;
    for (size_t d = 0; d < load.args.size() && !differs; ++d) {
      const std::optional<int64_t> distance = as_const(
          simplify(load.args[d] - store.indices[d], ranges));
      differs = distance && *distance != 0;
    }
    apart &= differs;
  });
  return apart;
}

Error check_movable(const Kernel& kernel, const LoweredStage& stage) {
  bool after = false;
  for (const Stmt& store : stores_of(kernel.body)) {
    if (store == stage.store) {
      after = true;
      continue;
    }
    if (store->buffer == stage.store->buffer)
      return illegal("stage '{0}' writes '{1}' too, so '{2}' must stay where it is", store->label,
                     kernel.buffer(store->buffer).name, stage.store->label);
    if (after && reads(stage.nest, store->buffer) && !reads_elsewhere(kernel, stage, *store))
      return illegal("stage '{0}' reads '{1}', which stage '{2}' changes later", stage.store->label,
                     kernel.buffer(store->buffer).name, store->label);
  }
  if (reads(stage.nest, stage.store->buffer))
    return illegal("stage '{0}' reads its own buffer", stage.store->label);
  return Error::success();
}

bool is_token(const StmtNode& s) { return s.kind == StmtKind::signal || s.kind == StmtKind::wait; }

Error check_no_tokens(const Kernel& kernel, const StmtNode& loop) {
  std::map<std::string, int> elsewhere;  // by queue
  visit(kernel.body, [&](const Stmt& s) { elsewhere[s->label] += is_token(*s); });
  visit(loop.body[0], [&](const Stmt& s) { elsewhere[s->label] -= is_token(*s); });
  std::string queue;
  visit(loop.body[0], [&](const Stmt& s) {
    if (is_token(*s) && elsewhere[s->label] > 0) queue = s->label;
  });
  return queue.empty() ? Error::success()
                       : illegal(
                             "the iterations of loop '{0}' exchange tokens '{1}' with others, "
                             "in their given order",
                             loop.var, queue);
}

}  // namespace tw::sched
