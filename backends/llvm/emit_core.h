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

// What only an operating system, or memory besides the arena, could give a program. Errors: all of
// it that the program needs.
Error check_freestanding(const Program& program);

// Fills a module whose data layout is set.
void emit_core(llvm::Module& module, const Program& program, const std::string& symbol);

}  // namespace tw::codegen
