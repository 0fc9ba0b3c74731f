// Offsets of buffers in one arena. Buffers that are alive at the same time do not overlap.
#pragma once
#include <vector>

#include "ir/simplify.h"

namespace tw {

struct Lifetime {
  Expr bytes;               // size of the buffer; may use symbols
  int first = 0, last = 0;  // numbers of calls, inclusive
};
struct MemoryPlan {
  std::vector<Expr> offsets;  // in bytes, multiples of 64
  Expr bytes = 0;             // size of the whole arena
};
// Constant sizes are packed twice. The first packing takes buffers by size, largest first, each at
// the lowest free offset. The second may use that peak and little more. It takes buffers in the
// order of the calls and gives each the bytes that were used last, as these are likely still in the
// cache. If the second does not fit, the first stands. With symbols, buffers share slots: a buffer
// takes a free slot if one of their two sizes is provably at least the other, else it opens a new
// slot.
MemoryPlan plan_memory(const std::vector<Lifetime>& buffers, const Ranges& symbols);

// The share of the buffers' bytes that are warm when they are written: used within the last `cache`
// bytes that earlier calls touched. The first use of a byte is cold. 0 if sizes are symbolic.
double warm_share(const MemoryPlan& plan, const std::vector<Lifetime>& buffers, int64_t cache);

}  // namespace tw
