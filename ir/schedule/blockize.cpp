// blockize i tile
//   for i in 4 { for j in 4 {            block tile {
//     c: c[i, j] += a[i] * b[j]    ->      for i in 4 { for j in 4 { c: c[i, j] += a[i] * b[j] } }
//   } }                                  }
//
// The loop and its contents become a unit. No later step moves a loop across its border: reorder,
// fuse, and compute_at of its stages need nests without blocks. Loops inside may still be split and
// marked. Legal: no block has the name, and the loop is in no vector loop.
#include "ir/schedule/nest.h"

namespace tw::sched {

Error check_new_block(const Kernel& kernel, const std::string& name) {
  if (!is_name(name)) return illegal("a block cannot be called '{0}'", name);
  const bool taken = contains(kernel.body, [&](const StmtNode& s) {
    const auto* block = as<stmt::Block>(s);
    return block && block->name == name;
  });
  if (taken) return illegal("there is a block '{0}' already: names are unique in a kernel", name);
  return Error::success();
}

Error check_outside_instructions(std::span<const Stmt> path) {
  for (const Stmt& statement : path)
    if (const auto* block = as<stmt::Block>(statement); block && !block->intrinsic.empty())
      return illegal("loop '{0}' is in block '{1}', which is one instruction",
                     get<stmt::Loop>(path.back()).var, block->name);
  return Error::success();
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::Blockize& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  TW_TRY(check_outside_instructions(path));
  TW_TRY(check_new_block(kernel, s.name));
  for (const Stmt& around : path) {
    const auto* loop = as<stmt::Loop>(around);
    if (around != path.back() && loop && loop->kind == LoopKind::vector)
      return illegal("loop '{0}' is in the vector loop '{1}'", s.loop, loop->var);
  }
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(),
                     make_stmt(stmt::Block{.name = s.name, .intrinsic = {}, .body = path.back()}));
  return out;
}

}  // namespace tw::sched
