// Files in folders where other users can write.
#pragma once
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <string>

#include "support/diag.h"

namespace tw {

// The bytes of the file; large files are mapped. Errors (code io): it cannot be read, or it is a
// folder, a pipe (whose writer need not come) or a device (whose bytes need not end).
Expected<std::unique_ptr<llvm::MemoryBuffer>> regular_file(const std::string& path);

}  // namespace tw
