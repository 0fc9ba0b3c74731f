// Layout of the calls that run regions. plan_program.cpp makes the regions' own programs.
#pragma once
#include "program/lower_program.h"

namespace tw {

// The workspaces of a call that runs regions: the places in them, and their bytes by place, the
// processor first.
struct RegionLayout {
  RegionCall call;
  std::vector<Expr> workspaces;
};
// `function` is the function of the call, with the places of its operands. The numbers in `lowered`
// are indices into `regions`. Errors: a region whose memory depends on values of its own run.
Expected<RegionLayout> lay_out_regions(const Graph& graph, const LoweredRegions& lowered,
                                       const ExternCall& function,
                                       const std::vector<Program>& regions, size_t devices);

}  // namespace tw
