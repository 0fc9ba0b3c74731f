// A chain of maxima asks each of its numbers whether it is a NaN. This asks them in pairs, and
// joins the answers behind the chain.
#pragma once
#include <llvm/IR/PassManager.h>

namespace tw::codegen {

// One test a chain of maxima or minima of vectors (Values::extreme), where each step has one. It
// runs once register buffers are values.
struct JoinNanTestsPass : llvm::PassInfoMixin<JoinNanTestsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace tw::codegen
