// Replaces virtual threads for a machine without them. Their iterations run next to each other,
// statement by statement.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

//   for v in 2 vthread {       for k in 8 {
//     for k in 8 {               for v in 2 unroll { a(v, k) }
//       a(v, k)           ->     for v.1 in 2 unroll { b(v.1, k) }
//       b(v, k)                }
//     }
//   }
// Temps of a virtual thread get a dimension. The kernel must have no tokens.
Kernel interleave_virtual_threads(const Kernel& kernel);

}  // namespace tw
