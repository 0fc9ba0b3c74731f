// A chain of maxima tests each of its numbers for NaN. This pass tests them in pairs, and joins the
// answers after the chain.
#pragma once
#include <llvm/IR/PassManager.h>

namespace tw::codegen {

// Makes one test for a chain of maxima or minima of vectors (Values::extreme), in which each step
// has one. It runs once register buffers are values.
struct JoinNanTestsPass : llvm::PassInfoMixin<JoinNanTestsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace tw::codegen
