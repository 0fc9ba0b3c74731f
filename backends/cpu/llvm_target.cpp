#include "backends/cpu/llvm_target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#define TW_INITIALIZE(ARCH)                                                 \
  LLVMInitialize##ARCH##TargetInfo(), LLVMInitialize##ARCH##Target(),       \
      LLVMInitialize##ARCH##TargetMC(), LLVMInitialize##ARCH##AsmPrinter(), \
      LLVMInitialize##ARCH##AsmParser()

namespace tw {
Expected<const llvm::Target*> find_llvm_target(const std::string& triple) {
  static std::once_flag once;
  std::call_once(once, [] {
    TW_INITIALIZE(X86);
    TW_INITIALIZE(AArch64);
    TW_INITIALIZE(ARM);
    TW_INITIALIZE(RISCV);
  });
  std::string reason;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(
      llvm::Triple(llvm::Triple::normalize(triple)), reason);
  if (!target)
    return make_error(DiagCode::unsupported, "no code generator for {0}: {1}", triple, reason);
  return target;
}
}  // namespace tw
