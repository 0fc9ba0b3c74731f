// Sizes in arithmetic that notices numbers which are too large. Expressions wrap, and so do
// simplify() and what it proves: a size is looked at here before memory is made of it.
#pragma once
#include "ir/simplify.h"
#include "support/diag.h"

namespace tw {

// Of one dim, and of the iterations of a loop that no condition ends.
inline constexpr int64_t kMostExtent = int64_t{1} << 40;

// The largest number that stays countable: two of them can be added, and rounded up.
inline constexpr int64_t kMostCounted = int64_t{1} << 61;

// The least and the most that an i64 expression can be. Variables run through their ranges; one
// without an upper end is taken at its least, one of no range at 1. An end is unknown behind loads
// and operators that sizes do not have. nullopt: the expression, or a part of it, is beyond
// kMostCounted.
std::optional<Bounds> size_ends(const Expr& size, const Ranges& ranges = {});

// The most that it is; nullopt: more than can be counted, or unknown.
std::optional<int64_t> most_counted(const Expr& size, const Ranges& ranges = {});

// Sizes that are read twice in each step double, and passes walk through them again and again: each
// operand of a sum is written out in so many parts at most.
inline constexpr int64_t kMostParts = 1024;
bool has_many_parts(const Expr& size, int64_t most = kMostParts);
Error check_parts(const Expr& size);

}  // namespace tw
