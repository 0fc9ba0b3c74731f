// Machine code as the last word on a predicted schedule: what loops and steps cannot show
#pragma once
#include <memory>

#include "backends/backend.h"

namespace tw {

class CodeCheck {
 public:
  // usual: the kernel by its default schedule. Kernels that LLVM cannot estimate for the target
  // (Backend::estimate) are not checked.
  CodeCheck(const Target& target, const Kernel& usual);
  // True: the innermost loop moves more registers to the stack and back than the usual kernel's, or
  // the kernel takes more than a tenth more cycles with every access in the first cache.
  bool refuses(const Kernel& kernel) const;

 private:
  std::unique_ptr<Backend> backend_;  // null: nothing is checked
  KernelEstimate usual_;
};

}  // namespace tw
