// Finds LLVM's targets, after initializing them once.
#pragma once
#include <string>

#include "support/diag.h"

namespace llvm {
class Target;
}

namespace tw {
Expected<const llvm::Target*> find_llvm_target(const std::string& triple);
}  // namespace tw
