// The whole-model part of a freestanding object: the program function, the descriptor that its
// runtime reads (runtime/core/core.h) and the exported tw_<symbol>_compute.
#pragma once
#include <string>

#include "ir/program.h"
#include "support/diag.h"

namespace llvm {
class Module;
}

namespace tw::codegen {

// Errors: every feature of the program that needs an operating system, or memory besides the arena.
Error check_freestanding(const Program& program);

// Fills a module, which has its data layout already.
void emit_core(llvm::Module& module, const Program& program, const std::string& symbol);

}  // namespace tw::codegen
