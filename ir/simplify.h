// Algebra of integer index expressions: linear normal form, floor_div/floor_mod by constants,
// min/max, bounds. Used by shape inference (symbolic dims), by scheduling (regions) and before code
// generation.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"
#include "ir/symbols.h"

namespace tw {

struct Range {  // of a variable: min <= v <= max, either side may be unknown (undefined Expr)
  Expr min, max;
};
// Loop variable: {0, extent - 1}; symbol: symbol_range
using Ranges = std::map<std::string, Range, std::less<>>;

inline Range symbol_range(std::string_view symbol) { return {Expr(least_of(symbol)), Expr()}; }
// Of every variable in it, taken for a symbol
Ranges symbol_ranges(const Expr& e);

// Same value for every assignment inside the ranges; non-index (float, load) sub-expressions are
// simplified inside. Guarantees: sums are in one deterministic order, like terms merged; (16*a + b)
// floor_div 16 = a when 0 <= b < 16, and the like for floor_mod; comparisons that the ranges decide
// become bool immediates; select on a constant is resolved.
Expr simplify(const Expr& e, const Ranges& ranges = {});

// Constant bounds of an integer expression, where they are known.
struct Bounds {
  std::optional<int64_t> min, max;
};
Bounds constant_bounds(const Expr& e, const Ranges& ranges);
// An i64 value is computed from data, modulo 2^64: nothing follows from the sums in it.
bool may_wrap(const Expr& value);
bool can_prove(const Expr& condition, const Ranges& ranges);  // condition simplifies to true

// e = coefficient * var + rest, rest free of var; nullopt when e is not linear in var with a
// constant coefficient.
struct LinearTerm {
  int64_t coefficient;
  Expr rest;
};
std::optional<LinearTerm> linear_in(const Expr& e, std::string_view var);

// The smallest [min, max] (both inclusive, in terms of the variables that are not in `over`) that e
// takes while the variables of `over` run through their ranges. nullopt when no bound can be shown.
struct Interval {
  Expr min, max;
};
std::optional<Interval> interval_over(const Expr& e, const Ranges& over, const Ranges& all);

}  // namespace tw
