// How often each block of a function runs, where loops have known trip counts and branches depend
// on loop indices alone, as kernels of known sizes do.
#pragma once
#include <llvm/IR/Function.h>

#include <map>
#include <string>
#include <utility>

#include "support/diag.h"

namespace tw::codegen {

struct BlockRuns {  // of one run of the function, by names of blocks
  std::map<std::string, double> blocks;
  std::map<std::pair<std::string, std::string>, double> edges;
};

// Names all blocks. A branch that depends on data goes both ways equally often. Errors: a loop
// whose trip count depends on more than loop indices, or that is left in its middle; a function
// that would take too long to follow.
Expected<BlockRuns> count_block_runs(llvm::Function& function);

}  // namespace tw::codegen
