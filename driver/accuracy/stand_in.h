// Stand-ins: this machine cannot open an object, or another machine's code. It runs a library of
// its own in their place, with the same choices.
#pragma once
#include <optional>

#include "driver/compile/compile.h"

namespace tw {

// This machine as a target, in the given target's precision. nullopt: the target's own code runs
// here, or its device is looked for here. Errors: a precision that this machine has no instruction
// for.
Expected<std::optional<Target>> stand_in_for(const Target& target);

// Errors: layers whose choices differ. The stand-in's error then says nothing about the other.
Error check_same_choices(const CompileReport& compiled, const CompileReport& stand_in,
                         const Target& target);

}  // namespace tw
