// The instructions of a kernel's machine code by basic block, with how often each block runs.
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
  std::string name;  // of the function's block that it was made of; "": of none
  int loop = -1;     // the first block of the innermost loop that it is in; -1: it is in none
  bool header = false;
  int spills = 0;  // instructions that save or load a register that had no room
};

// Generates code as for an object file and hands its blocks to `use`, in order; their instructions
// live as long as the call. runs: of the module's only function. Errors: a call, as the code behind
// it is not seen; blocks that cannot be followed to the function's.
Error with_machine_code(llvm::Module& module, llvm::TargetMachine& machine, const BlockRuns& runs,
                        const std::function<Error(const std::vector<MachineBlock>&)>& use);

}  // namespace tw::codegen
