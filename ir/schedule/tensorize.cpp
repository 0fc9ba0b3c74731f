// tensorize j x86.vpdpbusd -> dot
//   for j in 16 { for k in 4 reduce {                          block dot by x86.vpdpbusd {
//     c: c[i, j] += i32(x[i, q*4 + k]) * i32(w[q, j, k])         for j in 16 unroll {
//   } }                                                    ->      for k in 4 unroll reduce {
//                                                                    c: ...
//                                                                } }
//                                                              }
//
// An instruction of the target computes the nest, if the nest matches its semantics: the same
// loops, expression and places of the operands in memory (ir/schedule/intrinsic.h). The block keeps
// the meaning, and the back end writes the instruction. A where of the stage that is constant
// throughout the nest becomes an if around the block. Legal: the target has the instruction, the
// nest matches it, and its stage has no init and no other where.
#include "ir/schedule/intrinsic.h"
#include "ir/schedule/nest.h"
#include "ir/target.h"

namespace tw::sched {
namespace {

// A nest around one store, without the store's where, and that where. Undefined: there is none, or
// the nest's loops decide it.
struct Guarded {
  Stmt nest;
  Expr where;
};
Guarded without_where(const Stmt& nest, Ranges ranges) {
  std::vector<LoopRef> loops;
  Stmt at = nest;
  for (; is<stmt::Loop>(at); at = loops.back()->body) {
    loops.emplace_back(at);
    add_range(ranges, *loops.back());
  }
  const auto* guarded = as<stmt::Store>(at);
  if (!guarded || !guarded->where.defined()) return {nest, {}};
  const Expr where = simplify(guarded->where, ranges);
  for (const LoopRef& loop : loops)
    if (uses_var(where, loop->var)) return {nest, {}};
  stmt::Store store = *guarded;
  store.where = {};
  return {replace(nest, at, make_store(std::move(store))), where};
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Tensorize& s, const Target* target) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const Intrinsic* intrinsic = target ? target->find_intrinsic(s.intrinsic) : nullptr;
  if (!intrinsic) {
    std::vector<std::string> known;
    for (size_t i = 0; target && i < target->intrinsics.size(); ++i)
      known.push_back(target->intrinsics[i].name);
    return illegal("the target has no intrinsic '{0}': {1}", s.intrinsic, it_has(known));
  }
  TW_TRY(check_outside_instructions(path));
  TW_TRY(check_new_block(kernel, s.name));
  TW_ASSIGN(const std::shared_ptr<const Kernel> instruction, semantics_of(*intrinsic));
  const std::vector<Stmt> around(path.begin(), path.end() - 1);
  const Ranges ranges = ranges_of(kernel, around);
  const Guarded guarded = without_where(path.back(), ranges);
  TW_TRY(match_intrinsic(*intrinsic, *instruction, kernel, guarded.nest, ranges).takeError());
  const Stmt expanded = rewrite(guarded.nest, [](const Stmt& n) -> Stmt {
    const auto* found = as<stmt::Loop>(n);
    if (!found) return nullptr;
    stmt::Loop loop = *found;
    loop.kind = LoopKind::unroll;
    return make_stmt(std::move(loop));
  });
  Stmt block = make_stmt(stmt::Block{s.name, s.intrinsic, expanded});
  if (guarded.where.defined()) block = make_if(guarded.where, std::move(block));
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), block);
  return out;
}

}  // namespace tw::sched
