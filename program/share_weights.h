// Programs that have their weights together, each piece there once.
#pragma once
#include "ir/program.h"

namespace tw {

// Adds the pieces of `other` to those of `program`, but for those that are there already, and lets
// the calls of `other` and of its regions read them there; `other` keeps none. The result: bytes
// that both have. Not for programs with devices.
uint64_t share_weights(Program& program, Program& other);

}  // namespace tw
