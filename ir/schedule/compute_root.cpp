// compute_root c
//   for i0 in 4 {                                          for c_i0 in 4 { for c_i in 14 {
//     for c_i in 14 { c: c[c_i] = x[i0*14+c_i] * 2 }         c: c[c_i0, c_i] = x[c_i0*14+c_i] * 2
//     for i1 in 14 { y: y[i0*14+i1] = c[i1] + 1 }      ->  } }
//   }                                                      for i0 in 4 { for i1 in 14 {
//                                                            y: y[i0*14+i1] = c[i0, i1] + 1
//                                                          } }
//
// Undoes compute_at. The stage, with its init if that is a nest of its own, is computed for every
// iteration of the loops around and in front of them. The temp keeps all results and gets a
// dimension for each loop. A stack or register temp moves to scope global. Legal: the stage writes
// a temp that no other stage writes, and stands beside all its readers in a loop. Nothing else in
// the nest writes what it reads. The conditions around read no buffer. No iteration of the loops
// reads what another one has stored, as in a pipeline.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

bool only_writes(const Stmt& s, BufferId buffer) {
  const std::vector<StoreRef> stores = stores_of(s);
  return !stores.empty() && std::ranges::all_of(stores, [&](const StoreRef& store) {
    return store->buffer == buffer;
  });
}

// The sequence directly in a statement; none: the body is something else
Ref<stmt::Sequence> sequence_in(const Stmt& s) {
  const std::span<const Stmt> inside = children(s);
  return inside.size() == 1 && is<stmt::Sequence>(inside[0]) ? Ref<stmt::Sequence>(inside[0])
                                                             : Ref<stmt::Sequence>();
}

std::string var_of(const Stmt& s) {
  const auto* loop = as<stmt::Loop>(s);
  return loop ? loop->var : "";
}

// The number of statements on the path around the place where the stage stands beside its readers;
// 0: there is no such place
size_t depth_beside_readers(const std::vector<Stmt>& path, BufferId buffer) {
  for (size_t depth = path.size() - 1; depth > 0; --depth) {
    const auto sequence = sequence_in(path[depth - 1]);
    if (sequence && std::ranges::any_of(sequence->body, [&](const Stmt& s) {
          return !only_writes(s, buffer) && reads(s, buffer);
        }))
      return depth;
  }
  return 0;
}

// Refuses a stage that is read behind an outer loop: compute_at kept what the last iteration
// leaves.
Error check_kept(const Kernel& kernel, const std::vector<Stmt>& path, size_t depth) {
  const BufferId buffer = get<stmt::Store>(path.back()).buffer;
  for (size_t outer = 1; outer < depth; ++outer) {
    const auto sequence = sequence_in(path[outer - 1]);
    if (!sequence) continue;
    for (const Stmt& child : sequence->body)
      if (!contains(child, path.back()) && reads(child, buffer))
        return illegal("'{0}' is read behind loop '{1}' too", kernel.buffer(buffer).name,
                       var_of(path[depth - 1]));
  }
  return Error::success();
}

Error check_hoist(const Kernel& kernel, std::span<const Stmt> around,
                  const std::vector<Stmt>& moved, const stmt::Store& store) {
  const Buffer& buffer = kernel.buffer(store.buffer);
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}'", store.label, buffer.name);
  const Stmt nest = make_sequence(moved);
  for (const StoreRef& own : stores_of(nest))
    if (own->async)
      return illegal("the copies of stage '{0}' are asynchronous, with a wait where it stands",
                     own->label);
  for (const StoreRef& other : stores_of(kernel.body)) {
    if (contains(nest, other)) continue;
    if (other->buffer == store.buffer)
      return illegal("stage '{0}' writes '{1}' too", other->label, buffer.name);
    if (contains(around.front(), other) && reads(nest, other->buffer))
      return illegal(
          "stage '{0}' reads '{1}', which stage '{2}' makes in the same nest: move that first",
          store.label, kernel.buffer(other->buffer).name, other->label);
  }
  if (reads(replace(kernel.body, around.front(), nullptr), store.buffer))
    return illegal("'{0}' is read outside of loop '{1}'", buffer.name, var_of(around.front()));
  for (const Stmt& s : around) {
    if (const auto* guard = as<stmt::If>(s)) {
      if (has_load(guard->condition))
        return illegal("a condition around stage '{0}' reads a buffer", store.label);
      continue;
    }
    const auto* loop = as<stmt::Loop>(s);
    if (!loop) return illegal("stage '{0}' is in a block or role", store.label);
    if (loop->role == AxisRole::scan)
      return illegal("stage '{0}' is in the scan '{1}'", store.label, loop->var);
    if (loop->role == AxisRole::reduce &&
        std::ranges::any_of(stores_of(nest), [](const StoreRef& n) { return n->init.defined(); }))
      return illegal("the init of stage '{0}' is inside of the reduce loop '{1}'", store.label,
                     loop->var);
    if (is_concurrent(loop->kind))
      return illegal("stage '{0}' is in the {1} loop '{2}'", store.label,
                     loop_kind_name(loop->kind), loop->var);
    TW_TRY(check_own_slots(kernel, *loop));
    for (const Stmt& another : around)
      if (const auto* other = as<stmt::Loop>(another); other && uses_var(loop->extent, other->var))
        return illegal("the extent of loop '{0}' depends on '{1}'", loop->var, other->var);
  }
  return Error::success();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeRoot& s) {
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, s.stage));
  const auto& store = get<stmt::Store>(path.back());
  const size_t depth = depth_beside_readers(path, store.buffer);
  if (depth == 0) return illegal("stage '{0}' is in no loop together with a reader", s.stage);
  TW_TRY(check_kept(kernel, path, depth));
  const std::span<const Stmt> around(path.data(), depth);
  const auto sequence = sequence_in(path[depth - 1]);
  std::vector<Stmt> moved, rest;
  bool read = false;
  for (const Stmt& child : sequence->body) {
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
  std::vector<Expr> shape, here;
  for (const Stmt& a : around) {
    const auto* loop = as<stmt::Loop>(a);
    if (!loop) continue;
    TW_TRY(check_new_loop(kernel, axis_name(s.stage, loop->var)));
    shape.push_back(loop->extent);
    here.push_back(var(loop->var));
  }
  buffer.shape.insert(buffer.shape.begin(), shape.begin(), shape.end());
  const auto with_prefix = [](const std::vector<Expr>& prefix) {
    return [&prefix](std::vector<Expr> indices) {
      indices.insert(indices.begin(), prefix.begin(), prefix.end());
      return indices;
    };
  };
  Stmt nest = map_accesses(make_sequence(moved), store.buffer, with_prefix(here));
  for (size_t i = depth; i-- > 0;) {
    const auto* loop = as<stmt::Loop>(around[i]);
    nest = loop ? make_loop(loop->var, loop->extent, nest) : with_body(around[i], nest);
  }
  // The stage's copies of the loops get new names; the reader's loops keep theirs.
  nest = rewrite(nest, [&](const Stmt& n) -> Stmt {
    const auto* loop = as<stmt::Loop>(n);
    if (!loop || std::ranges::find(around, loop->var, var_of) == around.end()) return nullptr;
    const std::string name = axis_name(s.stage, loop->var);
    return make_loop(name, loop->extent, substitute(loop->body, loop->var, var(name)));
  });
  const Stmt reader = replace(around.front(), sequence.stmt(),
                              map_accesses(make_sequence(rest), store.buffer, with_prefix(here)));
  out.body = without_stale_prefetches(
      out, replace(kernel.body, around.front(), make_sequence({nest, reader})));
  out.body = simplify_tree(out.body, ranges_of(kernel, {}));
  return out;
}

}  // namespace tw::sched
