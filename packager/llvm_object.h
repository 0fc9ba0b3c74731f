// Runs LLVM's tools for object files: makes names local, and reads and writes archives.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace tw {

// The object with `exports` as the only names that others see, without the compiler's notes and the
// tables of exceptions
Expected<std::string> keep_global(const std::string& bytes,
                                  const std::vector<std::string>& exports);

// A static library that has the object as its one member
Expected<std::string> archive_of(const std::string& member, std::string_view object);
// The bytes of the archive's one member. Errors: no member, or several.
Expected<std::string_view> archive_member(std::string_view archive, const std::string& name);

}  // namespace tw
