// The footprint of a loop iteration in a buffer, and a stage's nest over a footprint.
#pragma once
#include "ir/schedule/nest.h"

namespace tw::sched {

struct DimFootprint {
  Expr min;            // in terms of variables outside the loop's body
  Expr extent;         // constant; if `whole`, the domain's extent
  bool whole = false;  // true: min is 0, and extent is the domain's
};

struct Access {
  std::vector<Expr> indices;
  // Ranges of the loops inside the attach loop, and of everything in scope
  Ranges inner, all;
};

// Loads of the buffer in the body of the loop or if at the end of `path`. An empty path means the
// whole kernel.
std::vector<Access> accesses(const Kernel& kernel, BufferId buffer, const std::vector<Stmt>& path);
// The footprint in one dimension: a constant extent, or the whole domain where no such interval can
// be shown. outer: ranges in scope at the loop's body.
DimFootprint footprint_of_dim(const std::vector<Access>& list, size_t dim, const Expr& domain,
                              const Ranges& outer);
// The stage's nest over the footprint of its buffer, with loops "<stage>_<var>". Points that may
// leave the domain are guarded. shrunk: the buffer holds the footprint alone, from index 0 on.
Stmt footprint_nest(const LoweredStage& stage, const std::vector<DimFootprint>& footprints,
                    const Ranges& outer, bool shrunk);

}  // namespace tw::sched
