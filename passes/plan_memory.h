// Places buffers with known lifetimes in one arena so that buffers alive at the same time do not overlap.
#pragma once
#include <vector>

#include "ir/simplify.h"

namespace tw {

struct Lifetime {
  Expr bytes;              // of the buffer; may use symbols
  int first = 0, last = 0; // calls, inclusive
};
struct MemoryPlan {
  std::vector<Expr> offsets;   // bytes, multiples of 64
  Expr bytes = 0;              // of the whole arena
};
// Constant sizes are packed largest first at the lowest free offset. With symbols, buffers share slots: a free slot
// is taken when its size is provably enough, a new one opened otherwise.
MemoryPlan plan_memory(const std::vector<Lifetime>& buffers, const Ranges& symbols);

}  // namespace tw
