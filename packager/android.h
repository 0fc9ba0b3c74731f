// What Android's loader asks of a library beyond what other Linux loaders do: it looks names up in
// the libraries that this one says it needs, and not in the program that loads it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "packager/elf_view.h"
#include "support/diag.h"

namespace tw {

bool is_android(std::string_view triple);

// Shared libraries to link with, which have nothing but names: those of the system's that define
// what `symbols` lack. `image`: the library of these symbols, of the same machine.
Expected<std::vector<std::string>> android_libraries(const ElfView& image,
                                                     const std::vector<ElfSymbol>& symbols);

}  // namespace tw
