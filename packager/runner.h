// The program that runs a library where there is nothing else: runtime/runner, linked for the
// library's machine.
#pragma once
#include <string>
#include <string_view>

#include "support/diag.h"

namespace tw {

// A static program, the same for every library of that triple. Errors: a triple without one.
Expected<std::string> link_runner(std::string_view triple);

}  // namespace tw
