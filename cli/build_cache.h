// The cache of compile: where it is, and what a build is known by there.
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
  // --cache's, else TILEWRIGHT_CACHE's; nullopt: there is none. Errors: a size that is none.
  Expected<std::optional<CompileCache>> open() const;
};

// A hash of all that a library's bytes depend on: this program, LLVM, the target, the bytes of the
// files, and the words, which say the rest. Errors: a file cannot be read.
Expected<std::string> build_key(const Target& target, const FileRoles& files,
                                const std::vector<std::string>& words);

}  // namespace tw
