// From how often a function's blocks run to how often those of its machine code do.
#pragma once
#include <llvm/CodeGen/MachineFunction.h>

#include <map>

#include "backends/estimate/block_runs.h"

namespace tw::codegen {

// Code generation splits, joins, copies and moves blocks. So the branches of the machine code get
// the shares that the function's edges have, LLVM's block frequencies follow them, and what was
// made of a block of the function is entered as often as that. Changes the probabilities that the
// machine code carries: nothing may be generated from it afterwards.
std::map<const llvm::MachineBasicBlock*, double> machine_block_runs(llvm::MachineFunction& function,
                                                                    const BlockRuns& runs);

}  // namespace tw::codegen
