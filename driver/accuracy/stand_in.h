// What this machine runs in place of a library that it cannot open: an object, or another
// machine's code.
#pragma once
#include <optional>

#include "driver/compile/compile.h"

namespace tw {

// This machine, in the target's precision; nullopt: the target's own code runs here, or its device
// is looked for here. Errors: a precision that this machine has no instruction for.
Expected<std::optional<Target>> stand_in_for(const Target& target);

// Errors: layers whose choices differ, so that the one does not say how far the other is off.
Error check_same_choices(const CompileReport& compiled, const CompileReport& stand_in,
                         const Target& target);

}  // namespace tw
