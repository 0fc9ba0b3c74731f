// Algebra of integer index expressions: linear normal form, floor_div and floor_mod by constants,
// min/max, bounds. Shape inference uses it for symbolic dims, scheduling for regions, and code
// generation for indices.
//
//   simplify((16*i + j) // 16) with 0 <= j < 16  ->  i
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"
#include "ir/symbols.h"

namespace tw {

struct Range {  // a variable's min <= v <= max; undefined: that side is unknown
  Expr min, max;
};
// Loop variables have {0, extent - 1}, symbols have symbol_range.
using Ranges = std::map<std::string, Range, std::less<>>;

inline Range symbol_range(std::string_view symbol) { return {Expr(least_of(symbol)), Expr()}; }
// The range of every variable in e, each taken for a symbol
Ranges symbol_ranges(const Expr& e);

// The result has the same value for every assignment inside the ranges. Float and load expressions
// are simplified inside. Guarantees: sums have one deterministic order and merge like terms; (16*a
// + b) floor_div 16 = a when 0 <= b < 16, and likewise floor_mod; comparisons that the ranges
// decide become bool immediates; a select on a constant is resolved.
Expr simplify(const Expr& e, const Ranges& ranges = {});

struct Bounds {
  std::optional<int64_t> min, max;
};
Bounds constant_bounds(const Expr& e, const Ranges& ranges);
// True: the i64 value depends on data and is computed modulo 2^64, so its sums prove nothing.
bool may_wrap(const Expr& value);
// true: the condition simplifies to true
bool can_prove(const Expr& condition, const Ranges& ranges);

// e = coefficient * var + rest, where rest is free of var. nullopt: e is not linear in var with a
// constant coefficient.
struct LinearTerm {
  int64_t coefficient;
  Expr rest;
};
std::optional<LinearTerm> linear_in(const Expr& e, std::string_view var);

// The smallest [min, max] of e while the variables of `over` run through their ranges. Both ends
// are inclusive, in terms of the other variables. nullopt: no bound can be shown.
struct Interval {
  Expr min, max;
};
std::optional<Interval> interval_over(const Expr& e, const Ranges& over, const Ranges& all);

}  // namespace tw
