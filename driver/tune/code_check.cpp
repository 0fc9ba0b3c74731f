#include "driver/tune/code_check.h"

namespace tw {

CodeCheck::CodeCheck(const Target& target, const Kernel& usual) {
  Expected<std::unique_ptr<Backend>> made = make_backend(target);
  if (!made) {
    llvm::consumeError(made.takeError());
    return;
  }
  Expected<KernelEstimate> code = (*made)->estimate(usual, ProcessorModel::likely);
  if (!code) {
    llvm::consumeError(code.takeError());
    return;
  }
  backend_ = std::move(*made);
  usual_ = *code;
}

bool CodeCheck::refuses(const Kernel& kernel) const {
  constexpr double kMoreCycles = 1.1;
  if (!backend_) return false;
  Expected<KernelEstimate> code = backend_->estimate(kernel, ProcessorModel::likely);
  if (!code) {
    llvm::consumeError(code.takeError());
    return true;
  }
  return code->hot.spills > usual_.hot.spills || code->cycles > kMoreCycles * usual_.cycles;
}

}  // namespace tw
