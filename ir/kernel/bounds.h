// A proof that a kernel stays inside its buffers. Lowering sees to that and schedules keep it, but
// texts of kernels and schedules come from logs, locks and other machines: before native code is
// made of what such a text says, it is shown once more, of the kernel itself.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Indices that are elements of a constant: of a lowered kernel they are right, as it brings its
// tables along; of a kernel from a text nobody knows what they are.
enum class Tables : uint8_t { ours, unknown };

// Shows for all sizes that every load and store has its indices inside of the buffer's extents,
// from the loops and the conditions around it, and that every buffer has a number of bytes. Errors:
// what cannot be shown, with the access; the first few of them.
Error check_bounds(const Kernel& kernel, Tables tables);

}  // namespace tw
