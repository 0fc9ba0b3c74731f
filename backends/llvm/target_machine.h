// LLVM's targets: initialised once; machines are cheap and belong to one thread.
#pragma once
#include <memory>
#include <string>

#include "backends/cpu/traits.h"
#include "support/diag.h"

namespace llvm {
class Target;
class TargetMachine;
}  // namespace llvm

namespace tw {
Expected<const llvm::Target*> find_llvm_target(const std::string& triple);
Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const std::string& triple, const CpuTraits& traits);
}  // namespace tw
