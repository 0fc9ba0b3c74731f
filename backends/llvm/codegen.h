// Turns an emitted module into bytes: a short list of passes, then the code generator.
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
// Runs SROA, EarlyCSE, InstCombine, SimplifyCFG and LICM. Explicit vector code needs these, and no
// pass that unrolls or merges taps. Every register buffer becomes SSA values.
Error run_passes(llvm::Module& module, llvm::TargetMachine& machine);
// Runs a code generator and turns LLVM's complaints into an Error. `report`, if any, gets spills.
Error guarded(llvm::Module& module, KernelReport* report, const std::function<Error()>& generate);
// Generates an object file or assembly text. `report`, if any, gets size and spills. LLVM's fatal
// errors become an Error.
Expected<std::string> generate_code(llvm::Module& module, llvm::TargetMachine& machine,
                                    bool assembly, KernelReport* report);

}  // namespace tw::codegen
