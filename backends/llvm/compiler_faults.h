// Faults of LLVM's code generators, kept away from by another form of the same code.
#pragma once

#include <llvm/IR/Function.h>

namespace tw::codegen {

// Gives an optimized function the forms that LLVM translates rightly. Nothing that it computes
// changes.
void avoid_compiler_faults(llvm::Function& function);

}  // namespace tw::codegen
