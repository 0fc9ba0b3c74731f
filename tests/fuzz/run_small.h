// Runs of small kernels that are proved to stay inside of their buffers.
#pragma once
#include "ir/kernel/bounds.h"

namespace tw::fuzz {

// The interpreter runs a kernel that check_bounds accepts, for several sizes, and must not touch
// anything outside of its buffers. Kernels with too many points or bytes do not run.
void check_really_within(const Kernel& kernel, Tables tables);

}  // namespace tw::fuzz
