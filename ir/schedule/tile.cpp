// tile i j 4 16 -> i0 j0 i1 j1
//   for i in 64 { for j in 64 {          for i0 in 16 { for j0 in 4 {
//     y: y[i, j] = x[i, j]         ->      for i1 in 4 { for j1 in 16 {
//   } }                                      y: y[i0*4+i1, j0*16+j1] = x[i0*4+i1, j0*16+j1]
//                                        } } } }
//
// Equals a split of each loop and a reorder that puts the outer ones first. Legal: if those steps
// are.
#include "ir/schedule/nest.h"

namespace tw::sched {

Expected<Kernel> apply_step(const Kernel& kernel, const step::Tile& s) {
  const size_t n = s.loops.size();
  if (n < 2) return illegal("tile needs two loops or more: split is for one");
  if (s.factors.size() != n)
    return illegal("tile needs a factor for each of the {0} loops, not {1}", n, s.factors.size());
  if (s.names.size() != 2 * n)
    return illegal("tile needs {0} new names, those of the outer loops first, not {1}", 2 * n,
                   s.names.size());
  Kernel out = kernel;
  for (size_t i = 0; i < n; ++i) {
    TW_ASSIGN(out, apply_step(out, step::Split{s.loops[i], s.factors[i], Tail::guard, s.names[i],
                                               s.names[n + i]}));
  }
  return apply_step(out, step::Reorder{s.names});
}

}  // namespace tw::sched
