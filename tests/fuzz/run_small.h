// Small kernels, run as they are shown to stay inside of their buffers.
#pragma once
#include "ir/kernel/bounds.h"

namespace tw::fuzz {

// A kernel that check_bounds lets pass is run by the interpreter, for several sizes, and must not
// touch anything outside of its buffers. Kernels with too many points or bytes are not run.
void check_really_within(const Kernel& kernel, Tables tables);

}  // namespace tw::fuzz
