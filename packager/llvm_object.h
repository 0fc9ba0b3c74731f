// What LLVM's tools for object files do here: local names, and archives.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace tw {

// The object with `exports` as the only names that it defines for others, without notes of tools
// and tables of exceptions.
Expected<std::string> keep_global(const std::string& bytes,
                                  const std::vector<std::string>& exports);

// A static library with the object as its one member.
Expected<std::string> archive_of(const std::string& member, std::string_view object);
// The bytes of that member. Errors: none, or several.
Expected<std::string_view> archive_member(std::string_view archive, const std::string& name);

}  // namespace tw
