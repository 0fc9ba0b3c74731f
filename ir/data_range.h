// Ranges of what data bring into i64 expressions (DataRange of ir/expr.h).
#pragma once
#include "ir/expr.h"

namespace tw {

// The range of a node by those of its operands; nothing: it is not i64, or made of sizes and loop
// variables.
std::optional<DataRange> data_range(const ExprNode& node);

// Ranges that a sum and a product with data have: nothing where they may leave 64 bits.
std::optional<DataRange> sum_range(const DataRange& a, const DataRange& b);
std::optional<DataRange> product_range(const DataRange& a, const DataRange& b);
// A range that stands for sizes and loop variables in sums and comparisons with data.
inline constexpr DataRange kSizes = {-(int64_t{1} << 40), int64_t{1} << 40};
// Sums and products with a number that no size reaches, as hashes and generators of random numbers
// have, are none of sizes: they may leave 64 bits, and wrap then.
inline bool is_beyond_sizes(int64_t number) {
  constexpr int64_t kMost = 4 * kSizes.most;  // what stands for "far" in clamps of sizes is less
  return number > kMost || number < -kMost;
}

}  // namespace tw
