// Works around faults of LLVM's code generators by other forms of the same code.
#pragma once

#include <llvm/IR/Function.h>

namespace tw::codegen {

// Gives an optimized function forms that LLVM translates correctly. Its results do not change.
void avoid_compiler_faults(llvm::Function& function);

}  // namespace tw::codegen
