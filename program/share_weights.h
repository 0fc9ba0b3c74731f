// Sharing of weights between programs: each piece is stored once.
#pragma once
#include "ir/program.h"

namespace tw {

// Adds the pieces of `other` to `program`, except those that `program` has already. The calls of
// `other` and of its regions then read them there, and `other` keeps no pieces. The result: the
// bytes that both have. Not for programs with devices.
uint64_t share_weights(Program& program, Program& other);

}  // namespace tw
