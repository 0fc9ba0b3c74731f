// The whole-model part of an artifact: the program function that calls the kernels in order, the
// descriptor that the runtime reads (runtime/model.h), the functions of symbolic sizes, and the
// exported query function.
#pragma once
#include <string>

#include "backends/backend.h"

namespace llvm {
class Module;
}

namespace tw::codegen {

// The symbol under which an object defines the kernel. It follows from what the kernel does, and
// not from its number, so that equal kernels of different models have equal objects.
std::string kernel_symbol(const Kernel& kernel);

// For a library with several programs: the name that objects of program `path` use for a symbol,
// and a function that renames kernels and description in a complete module.
std::string path_symbol(const std::string& symbol, int path);
void name_for_path(llvm::Module& module, int path);

// Fills a module, which has its data layout already. `cpu_features` is the comma-separated list for
// check_cpu.
void emit_program(llvm::Module& module, const Program& program, const CodegenOptions& options,
                  const std::string& cpu_features);

}  // namespace tw::codegen
