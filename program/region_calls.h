// Calls of regions, apart from the programs that the regions become (program/build_program.cpp).
#pragma once
#include "program/lower_program.h"

namespace tw {

// Of a node that runs regions: where things lie in the call's workspaces, and the bytes of these,
// of the processor and of each device. function: the call's, with the places of its operands.
// regions: the programs that the numbers in `lowered` mean. Errors: a region whose memory depends
// on what is known only while it runs.
struct RegionLayout {
  RegionCall call;
  std::vector<Expr> workspaces;
};
Expected<RegionLayout> lay_out_regions(const Graph& graph, const LoweredRegions& lowered,
                                       const ExternCall& function,
                                       const std::vector<Program>& regions, size_t devices);

}  // namespace tw
