// The load that a scheduled kernel puts on the first-level cache.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Bytes that the kernel loads from buffers outside registers, as an expression of its symbols. A
// straight piece of code consists of the innermost unrolled and vector loops. In one, a store loads
// each element once, a broadcast is one element, and a loop that does not move an element does not
// repeat its load. Conditions count as in the first iteration. Points that a `where` leaves out
// count too.
Expr loaded_bytes(const Kernel& kernel);

}  // namespace tw
