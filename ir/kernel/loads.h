// What the loops of a scheduled kernel ask of the first-level cache.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Bytes loaded from memory, wherever they lie. In one straight piece of code (unrolled and vector
// loops inside of all others) a store loads an element once, a broadcast is one element, and what a
// loop does not move is loaded outside of it; buffers in registers are none. Conditions count as in
// the first iteration, points that a `where` leaves out as well. An expression of the kernel's
// symbols.
Expr loaded_bytes(const Kernel& kernel);

}  // namespace tw
