// The instructions of a kernel's machine code by basic block, with the runs of each block
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/MC/MCInst.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <vector>

#include "backends/estimate/block_runs.h"

namespace tw::codegen {

struct MachineBlock {
  std::vector<llvm::MCInst> instructions;
  double runs = 0;
  std::string name;  // name of the function's block that it comes from; "": none
  int loop = -1;     // first block of the innermost loop around it; -1: none
  bool header = false;
  int spills = 0;  // instructions that save or reload a register
};

// Generates code as for an object file and passes its blocks to `use`, in order. The instructions
// live as long as the call. `runs` belongs to the module's only function. Errors: a call, as the
// called code is unknown; blocks that cannot be matched with the function's.
Error with_machine_code(llvm::Module& module, llvm::TargetMachine& machine, const BlockRuns& runs,
                        const std::function<Error(const std::vector<MachineBlock>&)>& use);

}  // namespace tw::codegen
