// Counts the runs of each block of a function. Trip counts must be known, and branches depend on
// loop indices alone, as in kernels of known sizes.
#pragma once
#include <llvm/IR/Function.h>

#include <map>
#include <string>
#include <utility>

#include "support/diag.h"

namespace tw::codegen {

struct BlockRuns {  // counts of one run of the function, by names of blocks
  std::map<std::string, double> blocks;
  std::map<std::pair<std::string, std::string>, double> edges;
};

// Names all blocks and counts their runs. A branch that depends on data goes both ways equally
// often. Errors: a loop whose trip count depends on more than loop indices, or that is left in its
// middle; a function that takes too long to follow.
Expected<BlockRuns> count_block_runs(llvm::Function& function);

}  // namespace tw::codegen
