// How much code a scheduled kernel becomes.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Operations of all stores with their unrolled loops written out, vector loops in steps of `lanes`:
// what a compiler has to look at. Loops count once.
int64_t written_out_operations(const Kernel& kernel, int64_t lanes);
// What a search allows its candidates where `usual` is the default: half as much again, and so
// many in any case. Spaces without rules have points that take minutes to compile.
inline constexpr int64_t kLeastOperations = 1024;
int64_t most_operations(const Kernel& usual, int64_t lanes);

}  // namespace tw
