// The amount of code that a scheduled kernel becomes.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// Operations of all stores, with unrolled loops written out and vector loops in steps of `lanes`.
// Other loops count once. This is the code that a compiler must process.
int64_t written_out_operations(const Kernel& kernel, int64_t lanes);
// The most operations that a search allows a candidate: half as many again as the default schedule
// `usual`, and at least kLeastOperations. Spaces without rules contain points that take minutes to
// compile.
inline constexpr int64_t kLeastOperations = 1024;
int64_t most_operations(const Kernel& usual, int64_t lanes);

}  // namespace tw
