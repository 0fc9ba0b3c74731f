// Counts the multiply-adds in a function's blocks.
#pragma once
#include <llvm/IR/Function.h>

#include <map>
#include <string>

namespace tw::codegen {

// Notes that the instruction, which is opaque to LLVM, does `count` multiply-adds.
void note_multiply_adds(llvm::Instruction& instruction, int64_t count);

// The multiply-adds in one run of each block, by its name; each element of a vector counts. They
// are the noted ones, fused operations, and sums of a product that nothing else reads. Index
// arithmetic, which has 64 bits, does not count.
std::map<std::string, double> count_multiply_adds(const llvm::Function& function);

}  // namespace tw::codegen
