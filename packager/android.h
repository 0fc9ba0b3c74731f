// Android's loader asks one thing more of a library than other Linux loaders do. It looks names up
// in the libraries that this one lists as needed, and not in the program that loads it. So the link
// lists the system's libraries, and stubs stand for them here.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "packager/elf_view.h"
#include "support/diag.h"

namespace tw {

bool is_android(std::string_view triple);

// Stubs of the system's shared libraries that define the undefined names among `symbols`: libraries
// with names and no code, to link with. `image` is the library that has these symbols; the stubs
// are for the same machine.
Expected<std::vector<std::string>> android_libraries(const ElfView& image,
                                                     const std::vector<ElfSymbol>& symbols);

}  // namespace tw
