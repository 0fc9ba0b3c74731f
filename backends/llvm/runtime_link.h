// Adds the artifact runtime (runtime/*.c, embedded as bitcode) to a module of generated code.
#pragma once
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace llvm {
class Module;
}

namespace tw {

// Before: a module with its triple and data layout set, that defines tw_model and the query function.
// After: it defines all of the runtime too; everything is internal but symbols of default visibility (the query function) and
// those named in `keep`: what objects of other modules (kernels compiled on their own) use. The runtime's functions keep the
// architecture's baseline CPU, so that the CPU check itself runs anywhere.
// The runtime has inline assembly: code generation needs InitializeAllAsmParsers too.
// Error: an architecture that the runtime was not built for.
Error link_runtime(llvm::Module& module, const std::vector<std::string_view>& keep = {"tw_parallel_for", "tw_clock_ns"});

}  // namespace tw
