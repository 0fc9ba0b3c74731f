// Files in places where others can write.
#pragma once
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <string>

#include "support/diag.h"

namespace tw {

// The file's bytes, mapped where they are many. Errors (code io): it cannot be read, or it is a
// folder, a pipe, which would be waited for, or a device, which need not end.
Expected<std::unique_ptr<llvm::MemoryBuffer>> regular_file(const std::string& path);

}  // namespace tw
