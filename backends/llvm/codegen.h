// From an emitted module to bytes: the short pass list, then the code generator.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/cpu/traits.h"

namespace tw::codegen {

// Sets triple, data layout and the per-function cpu attributes of every defined function.
void prepare_module(llvm::Module& module, llvm::TargetMachine& machine, const CpuTraits& traits);
// SROA, EarlyCSE, InstCombine, SimplifyCFG, LICM: what explicit vector code needs, and nothing that
// unrolls or merges taps. Every register buffer is reduced to SSA values.
Error run_passes(llvm::Module& module, llvm::TargetMachine& machine);
// Runs what generates code. What LLVM says against it comes back as an Error. `report`, if any,
// gets spills.
Error guarded(llvm::Module& module, KernelReport* report, const std::function<Error()>& generate);
// Object file or assembly text. `report`, if any, gets size and spills. LLVM's fatal errors come
// back as an Error.
Expected<std::string> generate_code(llvm::Module& module, llvm::TargetMachine& machine,
                                    bool assembly, KernelReport* report);

}  // namespace tw::codegen
