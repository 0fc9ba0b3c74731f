// A chain of maxima asks each of its numbers whether it is a NaN. This asks them in pairs, and
// joins the answers behind the chain.
#pragma once
#include <llvm/IR/PassManager.h>

namespace tw::codegen {

// Of what Values::extreme makes of vectors, once register buffers are values.
struct JoinNanTestsPass : llvm::PassInfoMixin<JoinNanTestsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace tw::codegen
