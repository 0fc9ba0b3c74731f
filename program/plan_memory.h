// Places buffers with known lifetimes in one arena so that buffers alive at the same time do not
// overlap.
#pragma once
#include <vector>

#include "ir/simplify.h"

namespace tw {

struct Lifetime {
  Expr bytes;               // of the buffer; may use symbols
  int first = 0, last = 0;  // calls, inclusive
};
struct MemoryPlan {
  std::vector<Expr> offsets;  // bytes, multiples of 64
  Expr bytes = 0;             // of the whole arena
};
// Constant sizes are first packed largest first at the lowest free offset. That peak, and little
// more, is then filled again in the order of the calls, every buffer where the bytes were used
// last: they are the likeliest to be in the cache. Where that does not fit, the first packing
// stands. With symbols, buffers share slots: a free slot is taken when its size is provably enough,
// a new one opened otherwise.
MemoryPlan plan_memory(const std::vector<Lifetime>& buffers, const Ranges& symbols);

// Of the bytes that buffers are made in, the share that was in use among the last `cache` bytes the
// calls before touched (the first use of a byte counts as a miss; 0 where sizes are symbolic).
double warm_share(const MemoryPlan& plan, const std::vector<Lifetime>& buffers, int64_t cache);

}  // namespace tw
