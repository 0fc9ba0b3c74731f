// vectorize j; unroll i and parallel i set their kinds in the same way
//   for j in 16 {                    for j in 16 vector {
//     y: y[i, j] = x[i, j]    ->       y: y[i, j] = x[i, j]
//   }                                }
//
// Legal: a serial loop, and for each kind:
// * vectorize: constant extent, not a scan, no loop inside. Every store inside stores to a
//   different place in each lane, or combines the lanes of a reduce loop.
// * unroll: constant extent of at most kMaxUnroll.
// * parallel: spatial, only serial scan loops around it, and no other parallel loop inside. Temps
//   written inside are private (scope stack or register) or indexed by the loop.
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

constexpr int64_t kMaxUnroll = 1024;  // limit of copies of the body
constexpr int64_t kMaxLanes = 1024;

Expected<Kernel> mark(const Kernel& kernel, const std::string& var, LoopKind kind,
                      int64_t max_extent) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, var));
  const auto& loop = get<stmt::Loop>(path.back());
  TW_TRY(check_serial(loop));
  if (max_extent > 0) {
    const std::optional<int64_t> extent = as_const(loop.extent);
    if (!extent || *extent > max_extent)
      return illegal("the extent of loop '{0}' must be a constant of at most {1} to be {2}", var,
                     max_extent, loop_kind_name(kind));
  }
  Kernel out = kernel;
  stmt::Loop marked = loop;
  marked.kind = kind;
  out.body = replace(kernel.body, path.back(), make_stmt(std::move(marked)));
  return out;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Vectorize& s) {
  return mark(kernel, s.loop, LoopKind::vector, kMaxLanes);
}
Expected<Kernel> apply_step(const Kernel& kernel, const step::Unroll& s) {
  return mark(kernel, s.loop, LoopKind::unroll, kMaxUnroll);
}
Expected<Kernel> apply_step(const Kernel& kernel, const step::Parallel& s) {
  return mark(kernel, s.loop, LoopKind::parallel, 0);
}

}  // namespace tw::sched
