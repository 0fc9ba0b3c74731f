// partition i 1 2 -> a z
//   for i in 9 {                  y.a: y[0] = ...
//     y: y[i] = ...        ->     for i in 6 { y: y[i + 1] = ... }
//   }                             for i_z in 2 { y.z: y[i_z + 7] = ... }
//
// peel cuts one end only: peel i 2 -> a, or peel i 2 back -> z.
//
// The parts run in the old order. Conditions and shifted blocks that hold throughout a part
// disappear there. The middle keeps all names. The copies add "_<suffix>" to loops and ".<suffix>"
// to stages. A part of one iteration has no loop. Only the first part of a reduce loop keeps the
// inits. Legal: a serial loop with more iterations than are cut off. A loop of symbolic extent may
// have none left, unless it is a reduce loop with inits.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

Error check_suffix(const Kernel& kernel, const stmt::Loop& loop, const Stmt& body,
                   const std::string& suffix) {
  if (suffix.empty()) return illegal("a copy of loop '{0}' needs a suffix", loop.var);
  Error error = check_new_loop(kernel, loop.var + "_" + suffix);
  visit(body, [&](const Stmt& s) {
    if (error) return;
    if (const auto* inner = as<stmt::Loop>(s))
      error = is_concurrent(inner->kind) ? illegal("the {0} loop '{1}' cannot be copied",
                                                   loop_kind_name(inner->kind), inner->var)
                                         : check_new_loop(kernel, inner->var + "_" + suffix);
    if (const auto* store = as<stmt::Store>(s))
      error = check_new_stage(kernel, store->label + "." + suffix);
    if (const auto* block = as<stmt::Block>(s))
      error = check_new_block(kernel, block->name + "." + suffix);
  });
  return error;
}

Stmt renamed(const Stmt& body, const std::string& suffix) {
  if (suffix.empty()) return body;
  return rewrite(body, [&](const Stmt& s) -> Stmt {
    if (const auto* found = as<stmt::Loop>(s)) {
      stmt::Loop loop = *found;
      loop.var += "_" + suffix;
      loop.body = substitute(found->body, found->var, var(loop.var));
      return make_stmt(std::move(loop));
    }
    if (const auto* found = as<stmt::Store>(s)) {
      stmt::Store store = *found;
      store.label += "." + suffix;
      return make_stmt(std::move(store));
    }
    const auto* block = as<stmt::Block>(s);
    return block ? make_stmt(stmt::Block{block->name + "." + suffix, block->intrinsic, block->body})
                 : nullptr;
  });
}

namespace {

struct Part {
  Expr begin;
  int64_t extent = 0;  // 0: all remaining iterations
  std::string suffix;  // empty: names stay
};

Stmt without_inits(const Stmt& body) {
  return rewrite(body, [](const Stmt& s) -> Stmt {
    const auto* store = as<stmt::Store>(s);
    return store && store->init.defined() ? without_init(*store) : nullptr;
  });
}

Stmt part_of(const stmt::Loop& loop, const Part& part, const Expr& rest, bool first) {
  Stmt body = renamed(loop.body, part.suffix);
  if (loop.role == AxisRole::reduce && !first) body = without_inits(body);
  const Expr extent = part.extent ? Expr(part.extent) : rest;
  if (is_const(extent, 1)) return substitute(body, loop.var, part.begin);
  const std::string name = part.suffix.empty() ? loop.var : loop.var + "_" + part.suffix;
  return make_loop(name, extent, substitute(body, loop.var, var(name) + part.begin),
                   LoopKind::serial, loop.role);
}

Expected<Kernel> cut(const Kernel& kernel, const std::string& name, int64_t front, int64_t back,
                     const std::string& front_suffix, const std::string& back_suffix) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, name));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  const Bounds bounds = constant_bounds(loop.extent, ranges_of(kernel, path));
  // Inits stay with the first part, so it must run.
  const bool has_inits = std::ranges::any_of(
      stores_of(loop.body), [](const StoreRef& store) { return store->init.defined(); });
  const int64_t rest_at_least = loop.role == AxisRole::reduce && has_inits ? 1 : 0;
  if (!bounds.min || front + back > *bounds.min - (as_const(loop.extent) ? 1 : rest_at_least))
    return illegal("loop '{0}' must be known to have more iterations than the {1} that are cut off",
                   name, front + back);
  std::vector<Part> parts;
  if (front > 0) {
    TW_TRY(check_suffix(kernel, loop, loop.body, front_suffix));
    parts.push_back({Expr(0), front, front_suffix});
  }
  parts.push_back({Expr(front), 0, ""});
  if (back > 0) {
    TW_TRY(check_suffix(kernel, loop, loop.body, back_suffix));
    if (front > 0 && front_suffix == back_suffix)
      return illegal("the two ends of loop '{0}' need different suffixes", name);
    parts.push_back({loop.extent - Expr(back), back, back_suffix});
  }
  const Expr rest = simplify(loop.extent - Expr(front + back));
  std::vector<Stmt> body;
  for (const Part& part : parts) body.push_back(part_of(loop, part, rest, body.empty()));
  return with_replaced(kernel, path, make_sequence(std::move(body)));
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Partition& s) {
  if (s.front < 1 || s.back < 1)
    return illegal("both ends of loop '{0}' need at least one iteration: peel cuts one end",
                   s.loop);
  return cut(kernel, s.loop, s.front, s.back, s.front_suffix, s.back_suffix);
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::Peel& s) {
  if (s.count < 1)
    return illegal("peeling {0} iterations off loop '{1}' does nothing", s.count, s.loop);
  return s.back ? cut(kernel, s.loop, 0, s.count, "", s.suffix)
                : cut(kernel, s.loop, s.count, 0, s.suffix, "");
}

}  // namespace tw::sched
