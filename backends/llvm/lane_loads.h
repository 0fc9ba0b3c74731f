// Elements that vectors are multiplied by, loaded together.
#pragma once
#include <llvm/IR/Function.h>

namespace tw::codegen {

// For processors whose products take an element of a vector, with so many vector registers.
void load_lanes_together(llvm::Function& function, int registers);

}  // namespace tw::codegen
