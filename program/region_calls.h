// Calls of regions, apart from the programs that the regions become (program/build_program.cpp).
#pragma once
#include "ir/group.h"
#include "ir/program.h"

namespace tw {

// Of a node that runs regions, whose programs are those of these numbers: where things lie in the
// call's workspace, and its size. Errors: a region whose memory depends on what is known only while
// it runs.
struct RegionLayout {
  RegionCall call;
  Expr workspace;
};
Expected<RegionLayout> lay_out_regions(const Graph& graph, const Node& node,
                                       const std::vector<int>& numbers,
                                       const std::vector<Program>& regions);

}  // namespace tw
