// Virtual threads on a machine that has none: their iterations next to each other, statement by
// statement.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

//   for v in 2 vthread { for k in 8 { a(v, k)  b(v, k) } }   ->   for k in 8 { for v in 2 unroll {
//                                                                 a }  for v.1 in 2 unroll { b } }
// Temps per virtual thread get a dimension. The kernel must have no tokens.
Kernel interleave_virtual_threads(const Kernel& kernel);

}  // namespace tw
