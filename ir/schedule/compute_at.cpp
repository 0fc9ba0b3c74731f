// compute_at c i0
//   for i in 56 { for k in 64 reduce {            for i0 in 4 {
//     c: c[i] += a[i, k] init 0                     for c_i in 14 { for k in 64 reduce {
//   } }                                       ->      c: c[c_i] += a[i0*14+c_i, k] init 0
//   for i0 in 4 { for i1 in 14 {                    } }
//     y: y[i0*14+i1] = max(0, c[i0*14+i1])          for i1 in 14 { y: y[i0*14+i1] = max(0, c[i1]) }
//   } }                                           }
//
// Computes in each iteration the footprint of c that the loop's body reads. In each dimension it
// has a minimum in the outer variables and a constant extent or a bound of it. Where no such
// interval can be shown, it is the whole dimension. c shrinks to the footprint. Its loops are named
// "<stage>_<var>" (extent 1 has none); reduce loops keep their names. Points of the footprint
// outside c's domain are guarded, and so is all of it where no reader stores anything. A global c
// of at most kMaxStackBufferBytes moves to the stack. Under a reduce loop of the consumer the init
// becomes a nest of its own, because it must run in each of that loop's iterations.
//
// Legal: c is a temp whose nest is as lowered. All readers are in the loop, which is not a vector
// loop. No later statement changes what c reads.
//
// Readers behind the loop are legal too if its iterations complete what they read. c then keeps
// that part, from the innermost loop on that holds all readers ("home"), and each iteration adds to
// it:
//   for e_i in 64 { e: e[e_i] = exp(x[e_i]) }     for k0 in 8 reduce {
//   for k0 in 8 reduce { for k1 in 8 reduce {       for e_i in 8 {
//     s: s[] += e[k0*8+k1] init 0            ->       e: e[k0*8+e_i] = exp(x[k0*8+e_i])
//   } }                                             }
//   for i in 64 { y: y[i] = e[i] / s[] }            for k1 in 8 reduce { s: s[] += e[k0*8+k1] ... }
//                                                 }
//                                                 for i in 64 { y: y[i] = e[i] / s[] }
#include <algorithm>

#include "ir/kernel/guards.h"
#include "ir/kernel/stack_limits.h"
#include "ir/schedule/footprint.h"

namespace tw::sched {

namespace {

// A copy in flight reads its source until it is waited for, and the next iteration overwrites that
// source.
Error check_copies(const stmt::Loop& loop, BufferId id, const std::string& name) {
  for (const StoreRef& store : stores_of(loop.body))
    if (store->async && reads(store, id) && !waits_for(loop.body, done_queue(store->label)))
      return illegal(
          "the asynchronous copy of stage '{0}' reads '{1}', and is waited for outside of loop "
          "'{2}'",
          store->label, name, loop.var);
  return Error::success();
}

// The position in `path` of the last statement around all readers of the buffer: those in the loop
// at the end of `path`, and those behind it
Expected<size_t> home_of(const Kernel& kernel, const LoweredStage& stage,
                         const std::vector<Stmt>& path, size_t readers) {
  const BufferId id = stage.store->buffer;
  const std::string &loop = get<stmt::Loop>(path.back()).var, &name = kernel.buffer(id).name;
  if (readers == 0) return illegal("nothing in loop '{0}' reads '{1}'", loop, name);
  std::optional<size_t> home;
  size_t in_stores = 0;
  bool passed = false;
  for (const StoreRef& store : stores_of(kernel.body)) {
    size_t here = 0;
    visit_loads(store,
                [&](const expr::Load& load, std::span<const Stmt>) { here += load.buffer == id; });
    in_stores += here;
    const std::vector<Stmt> to = find_path(kernel.body, store);
    const auto common = static_cast<size_t>(std::ranges::mismatch(path, to).in1 - path.begin());
    passed |= common == path.size();
    if (here == 0 || common == path.size()) continue;
    if (!passed || home.value_or(common) != common)
      return illegal("stage '{0}' reads '{1}' outside of loop '{2}', before all of it is there",
                     store->label, name, loop);
    home = common;
  }
  size_t all = 0;
  visit_loads(kernel.body,
              [&](const expr::Load& load, std::span<const Stmt>) { all += load.buffer == id; });
  if (all != in_stores) return illegal("a loop extent or condition reads '{0}'", name);
  return home.value_or(path.size());
}

// True: the iterations of `loops` together cover all of `whole`, with `part` in each. Only the loop
// with the longest steps may have an unknown number of iterations.
bool completes(const DimFootprint& whole, const DimFootprint& part,
               const std::vector<LoopRef>& loops, const Ranges& ranges) {
  if (part.whole) return true;
  const std::optional<int64_t> in_one = as_const(part.extent);
  if (!in_one) return false;
  struct Steps {
    int64_t coefficient;
    Expr iterations;
  };
  std::vector<Steps> terms;
  Expr rest = simplify(part.min - whole.min, ranges);
  for (const LoopRef& loop : loops) {
    if (!uses_var(rest, loop->var)) continue;
    const auto term = linear_in(rest, loop->var);
    if (!term || term->coefficient < 1) return false;
    terms.push_back({term->coefficient, loop->extent});
  }
  for (const LoopRef& loop : loops) rest = simplify(substitute(rest, loop->var, Expr(0)), ranges);
  if (!is_const(rest, 0)) return false;
  std::ranges::sort(terms, {}, &Steps::coefficient);
  Expr covered = *in_one;
  for (const auto& [coefficient, iterations] : terms) {
    const std::optional<int64_t> so_far = as_const(covered);
    if (!so_far || coefficient > *so_far) return false;
    covered = simplify(covered + (iterations - 1) * coefficient, ranges);
  }
  return can_prove(le(whole.extent, covered), ranges);
}

// Checks that the loop at the end of `path` completes all that the readers behind it read.
Error check_complete(const Kernel& kernel, BufferId id, std::span<const Stmt> path,
                     const std::vector<DimFootprint>& kept, const std::vector<DimFootprint>& parts,
                     const Ranges& ranges) {
  const std::string &name = kernel.buffer(id).name, &last = get<stmt::Loop>(path.back()).var;
  std::vector<LoopRef> loops;
  for (const Stmt& s : path) {
    if (!is<stmt::Loop>(s))
      return illegal("'{0}' is read behind loop '{1}', which runs under a condition", name, last);
    const LoopRef& loop = loops.emplace_back(s);
    if (loop->role == AxisRole::scan ||
        !(loop->kind == LoopKind::serial || loop->kind == LoopKind::unroll))
      return illegal("'{0}' is read behind loop '{1}', and its parts are not made one by one", name,
                     loop->var);
    size_t dims = 0;
    for (const DimFootprint& part : parts) dims += uses_var(part.min, loop->var);
    if (dims > 1)
      return illegal("loop '{0}' moves along several dimensions of '{1}'", loop->var, name);
  }
  for (size_t d = 0; d < parts.size(); ++d)
    if (!completes(kept[d], parts[d], loops, ranges))
      return illegal(
          "'{0}' is read behind loop '{1}', whose iterations do not complete its dimension {2}",
          name, last, d);
  return Error::success();
}

std::vector<DimFootprint> footprints_of(const std::vector<Access>& readers,
                                        const LoweredStage& stage, const Ranges& ranges) {
  std::vector<DimFootprint> footprints;
  for (size_t dim = 0; dim < stage.store->indices.size(); ++dim)
    footprints.push_back(footprint_of_dim(readers, dim, stage.extent_of_dim(dim), ranges));
  return footprints;
}

Error check_target(const Kernel& kernel, const LoweredStage& stage, const std::vector<Stmt>& path) {
  const std::string& label = stage.store->label;
  const Buffer& buffer = kernel.buffer(stage.store->buffer);
  const auto& loop = get<stmt::Loop>(path.back());
  if (buffer.role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}', which must be complete", label,
                   buffer.name);
  for (size_t i = 0; i < stage.around.size(); ++i) {
    if (i + 1 < path.size() && path[i] == stage.around[i]) continue;
    const auto* around = as<stmt::Loop>(stage.around[i]);
    if (!around)
      return illegal("stage '{0}' is under a condition, loop '{1}' is not", label, loop.var);
    return illegal(
        "stage '{0}' is in {1} loop '{2}', loop '{3}' is not: it would see the last iteration only",
        label, axis_role_name(around->role), around->var, loop.var);
  }
  if (std::ranges::find(path, stage.nest) != path.end())
    return illegal("loop '{0}' belongs to stage '{1}' itself", loop.var, label);
  if (loop.kind == LoopKind::vector)
    return illegal("loop '{0}' is a vector loop: nothing can be computed in it", loop.var);
  TW_TRY(check_movable(kernel, stage));
  TW_TRY(check_copies(loop, stage.store->buffer, buffer.name));
  for (const LoopRef& axis : stage.spatial)
    if (axis_name(label, axis->var) != axis->var)
      TW_TRY(check_new_loop(kernel, axis_name(label, axis->var)));
  return Error::success();
}

bool is_reduce(const Stmt& s) {
  const auto* loop = as<stmt::Loop>(s);
  return loop && loop->role == AxisRole::reduce;
}

// Makes the init of a combining stage a nest of its own, for a stage under another stage's reduce
// loops.
Expected<Stmt> separate_init(const Kernel& kernel, const Stmt& nest, const std::string& label) {
  const std::vector<Stmt> path = find_path(nest,
                                           [](const StmtNode& s) { return is<stmt::Store>(s); });
  TW_TRY(check_new_stage(kernel, init_label(label)));
  for (const Stmt& s : path)
    if (const auto* loop = as<stmt::Loop>(s); loop && loop->role == AxisRole::spatial)
      TW_TRY(check_new_loop(kernel, init_name(loop->var)));
  const Stmt update = without_init(get<stmt::Store>(path.back()));
  return make_sequence({init_nest(path), replace(nest, path.back(), update)});
}

// The condition shared by all stores in the loop's body that read the buffer, as far as the body's
// own loops do not decide it. Undefined: there is none.
Expr asked_by_readers(const Stmt& body, BufferId id, const Ranges& outer) {
  std::optional<std::vector<Expr>> common;
  for (const StoreRef& store : stores_of(body)) {
    if (!reads(store, id)) continue;
    Ranges ranges = outer;
    std::vector<std::string> own;
    for (const Stmt& s : path_to(body, store->label))
      if (const auto* loop = as<stmt::Loop>(s)) {
        own.push_back(loop->var);
        add_range(ranges, *loop);
      }
    if (!store->where.defined() || has_load(store->where) ||
        (store->init.defined() && has_load(store->init)))
      return {};
    std::vector<Expr> here = conjuncts(simplify(store->where, ranges));
    std::erase_if(here, [&](const Expr& e) {
      return std::ranges::any_of(own, [&](const std::string& v) { return uses_var(e, v); });
    });
    if (!common) common = std::move(here);
    else
      std::erase_if(*common, [&](const Expr& e) {
        return std::ranges::none_of(here, [&](const Expr& other) { return equal(e, other); });
      });
  }
  return common ? conjunction(*common) : Expr();
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::ComputeAt& s) {
  TW_ASSIGN(LoweredStage stage, lowered_stage(kernel, s.stage, true));
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const auto& loop = get<stmt::Loop>(path.back());
  const BufferId id = stage.store->buffer;
  TW_TRY(check_target(kernel, stage, path));
  const std::vector<Access> readers = accesses(kernel, id, path);
  TW_ASSIGN(const size_t home, home_of(kernel, stage, path, readers.size()));
  if (home < stage.around.size())
    return illegal("'{0}' is read outside of the loops around stage '{1}'", kernel.buffer(id).name,
                   s.stage);
  const std::vector<Stmt> home_path(path.begin(), path.begin() + static_cast<ptrdiff_t>(home));

  const Ranges outer = ranges_of(kernel, path), home_ranges = ranges_of(kernel, home_path);
  Kernel out = kernel;
  Buffer& buffer = out.buffer(id);
  const bool inside = home == path.size();  // true: all readers are in the loop
  const std::vector<DimFootprint> parts = footprints_of(readers, stage, outer),
                                  kept = inside ? parts
                                                : footprints_of(accesses(kernel, id, home_path),
                                                                stage, home_ranges);
  for (size_t dim = 0; dim < buffer.shape.size(); ++dim) buffer.shape[dim] = kept[dim].extent;
  if (!inside)
    TW_TRY(check_complete(kernel, id, std::span(path).subspan(home), kept, parts, outer));
  const std::optional<int64_t> bytes = constant_bytes(buffer);
  if (buffer.scope == "global" && bytes && *bytes <= kMaxStackBufferBytes) buffer.scope = "stack";

  Stmt nest = footprint_nest(stage, parts, outer, inside);
  if (const Expr asked = inside ? asked_by_readers(loop.body, id, outer) : Expr(); asked.defined())
    nest = with_condition(nest, asked);
  if (std::ranges::any_of(path, is_reduce) && stage.store->init.defined()) {
    TW_ASSIGN(nest, separate_init(kernel, nest, s.stage));
  }
  const auto shifted = [&](const Stmt& from) {
    return map_accesses(from, id, [&](std::vector<Expr> indices) {
      for (size_t dim = 0; dim < indices.size(); ++dim) indices[dim] = indices[dim] - kept[dim].min;
      return indices;
    });
  };
  if (inside) {
    Kernel moved = with_replaced(out, path,
                                 with_body(path.back(), make_sequence({nest, shifted(loop.body)})));
    moved.body = replace(moved.body, stage.nest, nullptr);
    return moved;
  }
  Stmt root = replace(home_path.empty() ? kernel.body : home_path.back(), path.back(),
                      with_body(path.back(), make_sequence({nest, loop.body})));
  root = shifted(replace(root, stage.nest, nullptr));
  if (home_path.empty()) {
    out.body = simplify_tree(root, home_ranges);
    return out;
  }
  Kernel moved = with_replaced(out, home_path, root);
  moved.body = replace(moved.body, stage.nest, nullptr);
  return moved;
}

}  // namespace tw::sched
