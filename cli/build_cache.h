// The cache of compile: its folder, and the keys of builds.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/file_roles.h"
#include "cli/flags.h"
#include "driver/compile/compile_cache.h"
#include "ir/target.h"

namespace tw {

struct CacheFlags {
  std::string folder, size;

  void define(Flags& flags);
  // The cache in the folder of --cache, else of TILEWRIGHT_CACHE; nullopt: neither is given.
  // Errors: a malformed size.
  Expected<std::optional<CompileCache>> open() const;
};

// Tells this compiler from others: a hash of the program, and LLVM's version. Errors: the program
// cannot be read.
Expected<std::string> compiler_identity();

// A hash of everything that a library's bytes depend on: this program, LLVM, the target, the bytes
// of the files, and `words` for the rest. Errors: a file cannot be read.
Expected<std::string> build_key(const Target& target, const FileRoles& files,
                                const std::vector<std::string>& words);

}  // namespace tw
