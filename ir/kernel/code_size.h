// How much code a scheduled kernel becomes.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Operations of all stores with their unrolled loops written out, vector loops in steps of `lanes`:
// what a compiler has to look at. Loops count once.
int64_t written_out_operations(const Kernel& kernel, int64_t lanes);

}  // namespace tw
