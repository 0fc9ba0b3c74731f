// compute_root c
//   for i0 in 4 {                                          for c_i0 in 4 { for c_i in 14 { c:
//                                                          c[c_i0, c_i] = x[c_i0*14+c_i] * 2 } }
//     for c_i in 14 { c: c[c_i] = x[i0*14+c_i] * 2 }  ->   for i0 in 4 { for i1 in 14 { y:
//                                                          y[i0*14+i1] = c[i0, i1] + 1 } }
//     for i1 in 14 { y: y[i0*14+i1] = c[i1] + 1 }
//   }
// Undoes compute_at: the stage (with its init, if that is a nest of its own) is computed for every
// iteration of the loops around, before them, and the temp keeps all of it, with a dimension a
// loop. A stack or register temp moves to scope global. Legal: the stage writes a temp, alone, and
// stands beside all its readers in a loop; nothing else in the nest writes what it reads; the
// conditions around read no buffer.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

bool only_writes(const Stmt& s, BufferId buffer) {
  const std::vector<Stmt> stores = stores_of(s);
  return !stores.empty() &&
         std::ranges::all_of(stores, [&](const Stmt& store) { return store->buffer == buffer; });
}

Stmt block_of(const Stmt& s) {
  return s->body.size() == 1 && s->body[0]->kind == StmtKind::sequence ? s->body[0] : nullptr;
}

// How many of the path's statements are around the place where the stage stands beside its readers;
// 0: nowhere.
size_t depth_beside_readers(const std::vector<Stmt>& path, BufferId buffer) {
  for (size_t depth = path.size() - 1; depth > 0; --depth) {
    const Stmt block = block_of(path[depth - 1]);
    if (block && std::ranges::any_of(block->body, [&](const Stmt& s) {
          return !only_writes(s, buffer) && reads(s, buffer);
        }))
      return depth;
  }
  return 0;
}

// Behind a loop, what its last iteration leaves may be read: kept by a compute_at.
Error check_kept(const Kernel& kernel, const std::vector<Stmt>& path, size_t depth) {
  const BufferId buffer = path.back()->buffer;
  for (size_t outer = 1; outer < depth; ++outer) {
    const Stmt block = block_of(path[outer - 1]);
    for (const Stmt& child : block ? block->body : std::vector<Stmt>()) {
      const bool around = !find_path(child, [&](const StmtNode& n) {
                             return &n == path.back().get();
                           }).empty();
      if (!around && reads(child, buffer))
        return illegal("'{0}' is read behind loop '{1}' too", kernel.buffer(buffer).name,
                       path[depth - 1]->var);
    }
  }
  return Error::success();
}

Error check_hoist(const Kernel& kernel, std::span<const Stmt> around,
                  const std::vector<Stmt>& moved, const StmtNode& store) {
  const Buffer& buffer = kernel.buffer(store.buffer);
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}'", store.label, buffer.name);
  const Stmt nest = make_sequence(moved);
  for (const Stmt& own : stores_of(nest))
    if (own->async)
      return illegal("the copies of stage '{0}' are asynchronous, with a wait where it stands",
                     own->label);
  const auto is_moved = [&](const Stmt& s) {
    return !find_path(nest, [&](const StmtNode& n) { return &n == s.get(); }).empty();
  };
  for (const Stmt& other : stores_of(kernel.body)) {
    if (is_moved(other)) continue;
    if (other->buffer == store.buffer)
      return illegal("stage '{0}' writes '{1}' too", other->label, buffer.name);
    const bool inside = !find_path(around.front(), [&](const StmtNode& n) {
                           return &n == other.get();
                         }).empty();
    if (inside && reads(nest, other->buffer))
      return illegal(
          "stage '{0}' reads '{1}', which stage '{2}' makes in the same nest: move that first",
          store.label, kernel.buffer(other->buffer).name, other->label);
  }
  if (reads(replace(kernel.body, around.front(), nullptr), store.buffer))
    return illegal("'{0}' is read outside of loop '{1}'", buffer.name, around.front()->var);
  for (const Stmt& s : around) {
    if (s->kind == StmtKind::if_then && has_load(s->condition))
      return illegal("a condition around stage '{0}' reads a buffer", store.label);
    if (s->kind != StmtKind::if_then && s->kind != StmtKind::loop)
      return illegal("stage '{0}' is in a block or role", store.label);
    if (s->kind != StmtKind::loop) continue;
    if (s->role == AxisRole::scan)
      return illegal("stage '{0}' is in the scan '{1}'", store.label, s->var);
    if (s->role == AxisRole::reduce &&
        std::ranges::any_of(stores_of(nest), [](const Stmt& n) { return n->init.defined(); }))
      return illegal("the init of stage '{0}' is inside of the reduce loop '{1}'", store.label,
                     s->var);
    if (is_concurrent(s->loop_kind))
      return illegal("stage '{0}' is in the {1} loop '{2}'", store.label,
                     loop_kind_name(s->loop_kind), s->var);
    for (const Stmt& other : around)
      if (other->kind == StmtKind::loop && uses_var(s->extent, other->var))
        return illegal("the extent of loop '{0}' depends on '{1}'", s->var, other->var);
  }
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeRoot& s) {
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, s.stage));
  const StmtNode store = *path.back();
  const size_t depth = depth_beside_readers(path, store.buffer);
  if (depth == 0) return illegal("stage '{0}' is in no loop together with a reader", s.stage);
  TW_TRY(check_kept(kernel, path, depth));
  const std::span<const Stmt> around(path.data(), depth);
  const Stmt block = block_of(path[depth - 1]);
  std::vector<Stmt> moved, rest;
  bool read = false;
  for (const Stmt& child : block->body) {
    const bool moves = only_writes(child, store.buffer);
    if (moves && read)
      return illegal("'{0}' is written again after it is read in the loop",
                     kernel.buffer(store.buffer).name);
    read |= !moves && reads(child, store.buffer);
    (moves ? moved : rest).push_back(child);
  }
  TW_TRY(check_hoist(kernel, around, moved, store));

  Kernel out = kernel;
  Buffer& buffer = out.buffer(store.buffer);
  if (buffer.scope == "stack" || buffer.scope == "thread" || buffer.scope == "register")
    buffer.scope = "global";
  std::vector<Expr> shape, here, there;
  for (const Stmt& a : around) {
    if (a->kind != StmtKind::loop) continue;
    TW_TRY(check_new_loop(kernel, axis_name(s.stage, a->var)));
    shape.push_back(a->extent);
    here.push_back(var(a->var));
    there.push_back(var(axis_name(s.stage, a->var)));
  }
  buffer.shape.insert(buffer.shape.begin(), shape.begin(), shape.end());
  const auto with_prefix = [](const std::vector<Expr>& prefix) {
    return [&prefix](std::vector<Expr> indices) {
      indices.insert(indices.begin(), prefix.begin(), prefix.end());
      return indices;
    };
  };
  Stmt nest = map_accesses(make_sequence(moved), store.buffer, with_prefix(here));
  for (size_t i = depth; i-- > 0;)
    nest = around[i]->kind == StmtKind::loop ? make_loop(around[i]->var, around[i]->extent, nest)
                                             : with_body(*around[i], nest);
  // names: those of the loops around belong to the reader
  nest = rewrite(nest, [&](const Stmt& n) -> Stmt {
    if (n->kind != StmtKind::loop ||
        std::ranges::none_of(around, [&](const Stmt& a) { return a->var == n->var; }))
      return nullptr;
    const std::string name = axis_name(s.stage, n->var);
    return make_loop(name, n->extent, substitute(n->body[0], n->var, var(name)));
  });
  const Stmt reader = replace(around.front(), block,
                              map_accesses(make_sequence(rest), store.buffer, with_prefix(here)));
  out.body = without_stale_prefetches(
      out, replace(kernel.body, around.front(), make_sequence({nest, reader})));
  out.body = simplify_tree(out.body, ranges_of(kernel, {}));
  return out;
}

}  // namespace tw::sched
