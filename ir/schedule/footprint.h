// The part of a buffer that one iteration of a loop reads, and a stage's nest over such a part.
#pragma once
#include "ir/schedule/nest.h"

namespace tw::sched {

struct DimFootprint {
  Expr min;            // in terms of variables outside of the loop's body
  Expr extent;         // constant, or the domain's when `whole`
  bool whole = false;  // min 0, extent that of the domain
};

struct Access {
  std::vector<Expr> indices;
  // Ranges of the loops inside the attach loop; of everything in scope
  Ranges inner, all;
};

// Loads of the buffer in the body of the loop or if at the end of `path`; empty: in the kernel.
std::vector<Access> accesses(const Kernel& kernel, BufferId buffer, const std::vector<Stmt>& path);
// Constant extent, or the whole domain where no such interval can be shown. `outer`: ranges in
// scope at the loop's body.
DimFootprint footprint_of_dim(const std::vector<Access>& list, size_t dim, const Expr& domain,
                              const Ranges& outer);
// The stage's nest over the footprint of its buffer, loops "<stage>_<var>", guarded where the
// footprint may leave the domain. Shrunk: the buffer is the footprint alone, from index 0 on.
Stmt footprint_nest(const LoweredStage& stage, const std::vector<DimFootprint>& footprints,
                    const Ranges& outer, bool shrunk);

}  // namespace tw::sched
