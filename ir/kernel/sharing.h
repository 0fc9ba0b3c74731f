// How well the parallel loops of a kernel spread over a processor's cores.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// How many times faster equal iterations are on so many cores than on one: 3 iterations on 2 cores
// 1.5 times.
double sharing(int64_t iterations, int64_t cores);

// Of the kernel's parallel loops the least; 1: there is none. Symbolic ones spread in full.
// Iterations at the end that store nothing are none: a schedule of a larger kernel may pass this
// one's extents by far.
double sharing(const Kernel& kernel, int64_t cores);

// Whether what spreads so does as well as the usual: losing more than 5 % on several threads is
// more than is gained on one.
inline bool spreads_as_well(double share, double usual) { return share >= 0.95 * usual; }

}  // namespace tw
