// Integer polynomials: the normal form of index expressions. A factor (atom) is anything that is
// not a sum or a product: a variable, a load, a floor_div, a min. Terms and factors are sorted
// structurally, so equal polynomials are equal values.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace tw::algebra {

// a total order by structure: variables first, numbers last
int compare(const Expr& a, const Expr& b);

struct Term {
  std::vector<Expr> factors;  // sorted atoms, at least one
  int64_t coefficient = 0;    // not 0
};

struct Poly {
  std::vector<Term> terms;  // sorted by factors, no two equal
  int64_t constant = 0;

  Poly() = default;
  Poly(int64_t value) : constant(value) {}  // NOLINT: numbers are polynomials
  bool is_constant() const { return terms.empty(); }
  // Of the term that is just this atom; 0: none
  int64_t coefficient_of(const Expr& atom) const;
  // The atom of p = 1 * atom + constant, or null
  const Expr* single_atom() const;
};

Poly atom(Expr e);
Poly add(const Poly& a, const Poly& b, int64_t scale_of_b = 1);
Poly sum(const std::vector<Poly>& parts);
Poly scale(const Poly& a, int64_t factor);
Poly multiply(const Poly& a, const Poly& b);
bool same(const Poly& a, const Poly& b);
// The sum of data and of what stands beside them may leave 64 bits: the value is p modulo 2^64, and
// no order follows from p. False for a single atom, which is the value itself.
bool may_wrap(const Poly& p);
// The numbers of a + scale_of_b * b have 64 bits: add keeps its order among numbers of any size.
bool numbers_fit(const Poly& a, const Poly& b, int64_t scale_of_b = 1);
// may_wrap of that sum, which has data in it; false without data
bool sum_may_wrap(const Poly& a, const Poly& b, int64_t scale_of_b = 1);
// p = coefficient * atom + rest, with neither containing the atom as a factor; nullopt when it
// occurs squared.
struct Split {
  Poly coefficient, rest;
};
std::optional<Split> split_on(const Poly& p, const Expr& atom);
std::vector<Expr> atoms_of(const Poly& p);  // every factor once, in term order

Poly parse(const Expr& e);    // opens sums and products, leaves the rest as atoms
Expr to_expr(const Poly& p);  // positive terms first, the constant last

// A chain of so many sums and differences that its operands are better put together at once.
bool is_long_sum(const Expr& e);
Poly sum_of(const Expr& e, const std::function<Poly(const Expr&)>& part);

}  // namespace tw::algebra
