// LLVM's machines. They are cheap, and each belongs to one thread.
#pragma once
#include <memory>
#include <string>

#include "backends/cpu/traits.h"
#include "support/diag.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace tw::codegen {
// Sets LLVM's options of the whole process. It must run before every use of a machine: a link in
// the process resets LLVM's options.
void set_llvm_options();
Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const std::string& triple,
                                                                   const CpuTraits& traits);
}  // namespace tw::codegen
