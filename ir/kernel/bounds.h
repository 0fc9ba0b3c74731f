// A proof that a kernel stays inside its buffers. Lowering and schedules keep that property, but
// texts of kernels and schedules come from logs, locks and other machines. The kernel itself is
// therefore checked again before native code is made of such a text.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Trust in indices that are elements of a constant. A lowered kernel brings its own tables, which
// are right. Nobody knows the tables of a kernel from a text.
enum class Tables : uint8_t { ours, unknown };

// Proves for all sizes that the indices of every load and store lie inside the buffer's extents,
// from the loops and conditions around it, and that every buffer has a countable number of bytes.
// Errors: the first few accesses without a proof.
Error check_bounds(const Kernel& kernel, Tables tables);

}  // namespace tw
