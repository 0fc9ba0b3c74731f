// Ranges of i64 expressions that depend on data (DataRange of ir/expr.h).
#pragma once
#include "ir/expr.h"

namespace tw {

// The range of a node, from the ranges of its operands. nullopt: the node is not i64, or it
// consists of sizes and loop variables alone.
std::optional<DataRange> data_range(const ExprNode& node);

// Range of a sum or product with data; nullopt: the result may leave 64 bits
std::optional<DataRange> sum_range(const DataRange& a, const DataRange& b);
std::optional<DataRange> product_range(const DataRange& a, const DataRange& b);
// The range assumed for sizes and loop variables in sums and comparisons with data
inline constexpr DataRange kSizes = {-(int64_t{1} << 40), int64_t{1} << 40};
// No size reaches such a number; hashes and random number generators use them. Arithmetic with it
// is not size arithmetic: it may leave 64 bits, and wraps then.
inline bool is_beyond_sizes(int64_t number) {
  // Above the numbers that mean "far" in clamps of sizes
  constexpr int64_t kMost = 4 * kSizes.most;
  return number > kMost || number < -kMost;
}

}  // namespace tw
