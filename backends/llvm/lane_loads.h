// Loads elements that vectors are multiplied by together.
#pragma once
#include <llvm/IR/Function.h>

namespace tw::codegen {

// For processors whose products can take an element of a vector. `registers` is their number of
// vector registers.
void load_lanes_together(llvm::Function& function, int registers);

}  // namespace tw::codegen
