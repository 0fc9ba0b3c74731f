// Derives the runs of machine code's blocks from those of the function's blocks.
#pragma once
#include <llvm/CodeGen/MachineFunction.h>

#include <map>

#include "backends/estimate/block_runs.h"

namespace tw::codegen {

// Code generation splits, joins, copies and moves blocks. So the machine code's branches get the
// shares of the function's edges, and LLVM's block frequencies follow from them. The machine code
// of each block of the function is then entered as often as the block itself. This changes the
// probabilities in the machine code: nothing may be generated from it afterwards.
std::map<const llvm::MachineBasicBlock*, double> machine_block_runs(llvm::MachineFunction& function,
                                                                    const BlockRuns& runs);

}  // namespace tw::codegen
