// How many multiply-adds the blocks of a function do.
#pragma once
#include <llvm/IR/Function.h>

#include <map>
#include <string>

namespace tw::codegen {

// Notes that the instruction, which LLVM knows nothing of, does so many.
void note_multiply_adds(llvm::Instruction& instruction, int64_t count);

// Of one run of each block, by its name: a vector's elements count one each. What is noted, fused
// operations, and sums of a product that nothing else reads. Index arithmetic, which is in 64 bits,
// does not count.
std::map<std::string, double> count_multiply_adds(const llvm::Function& function);

}  // namespace tw::codegen
