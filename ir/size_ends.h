// Bounds of sizes, in arithmetic that detects overflow. Expressions wrap, and so do simplify() and
// its proofs; a size is checked here before memory is made of it.
#pragma once
#include "ir/simplify.h"
#include "support/diag.h"

namespace tw {

// Largest value of one dim, and of the iterations of a loop that no condition ends
inline constexpr int64_t kMostExtent = int64_t{1} << 40;

// The largest countable number: two of them can be added and rounded up without overflow
inline constexpr int64_t kMostCounted = int64_t{1} << 61;

// The least and the most value of an i64 expression. Variables run through their ranges. A variable
// without an upper end counts as its least value, and one without a range as 1. Loads and operators
// that sizes do not use leave an end unknown. nullopt: the expression, or a part of it, exceeds
// kMostCounted.
std::optional<Bounds> size_ends(const Expr& size, const Ranges& ranges = {});

// The most value of `size`; nullopt: it is unknown or exceeds kMostCounted
std::optional<int64_t> most_counted(const Expr& size, const Ranges& ranges = {});

// Limit of the parts that each operand of a sum may have. An operator that reads a size twice
// doubles it, and passes walk through sizes again and again.
inline constexpr int64_t kMostParts = 1024;
bool has_many_parts(const Expr& size, int64_t most = kMostParts);
Error check_parts(const Expr& size);

}  // namespace tw
