// Indices for weights that are packed in panels of vectors.
#pragma once
#include "kernels/schedule/builder.h"

namespace tw {

inline constexpr int64_t kWidestPanel = 8;  // in vectors, for the search spaces

// The loop's variable; 0 if the loop is none
Expr variable(const Loop& loop);

}  // namespace tw
