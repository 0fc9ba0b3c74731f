// The whole-model part of an artifact: the program function that calls the kernels in order, the
// descriptor that the runtime reads (runtime/model.h), the functions of symbolic sizes and the
// exported query function.
#pragma once
#include <string>

#include "backends/backend.h"

namespace llvm {
class Module;
}

namespace tw::codegen {

// The symbol under which an object defines kernel `index`.
std::string kernel_symbol(size_t index);

// Of a library with several programs: what the objects of program `path` call such a symbol, and
// the names of kernels and description in a module that is complete.
std::string path_symbol(const std::string& symbol, int path);
void name_for_path(llvm::Module& module, int path);

// Fills a module whose data layout is set. `cpu_features` is what check_cpu asks for,
// comma-separated.
void emit_program(llvm::Module& module, const Program& program, const CodegenOptions& options,
                  const std::string& cpu_features);

}  // namespace tw::codegen
