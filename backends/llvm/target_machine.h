// LLVM's machines: cheap, and each belongs to one thread.
#pragma once
#include <memory>
#include <string>

#include "backends/cpu/traits.h"
#include "support/diag.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace tw::codegen {
// What LLVM knows as options of the process only. Before every use of a machine: a link in the
// process sets LLVM's options back.
void set_llvm_options();
Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const std::string& triple,
                                                                   const CpuTraits& traits);
}  // namespace tw::codegen
