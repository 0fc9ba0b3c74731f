// Links the program that runs a library on a machine that has nothing else: runtime/runner, for the
// library's machine.
#pragma once
#include <string>
#include <string_view>

#include "support/diag.h"

namespace tw {

// A static program, the same for every library of that triple. Errors: a triple that has no runner.
Expected<std::string> link_runner(std::string_view triple);

}  // namespace tw
