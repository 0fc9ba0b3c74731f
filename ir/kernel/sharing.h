// Measures how well a kernel's parallel loops spread over a processor's cores.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

// The speedup of equal iterations on `cores` cores over one: 1.5 for 3 iterations on 2 cores
double sharing(int64_t iterations, int64_t cores);

// The least speedup among the kernel's parallel loops; 1: it has none. Symbolic loops count as
// fully spread. Trailing iterations that store nothing do not count: a schedule made for a larger
// kernel may far exceed this one's extents.
double sharing(const Kernel& kernel, int64_t cores);

// True: `share` is about as good as `usual`. Losing more than 5 % on several threads outweighs the
// gain on one.
inline bool spreads_as_well(double share, double usual) { return share >= 0.95 * usual; }
inline bool spreads_as_well(const Kernel& kernel, const Kernel& usual, int64_t cores) {
  return spreads_as_well(sharing(kernel, cores), sharing(usual, cores));
}

}  // namespace tw
