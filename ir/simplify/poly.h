// Integer polynomials: the normal form of index expressions. A factor (atom) is anything that is
// not a sum or a product: a variable, a load, a floor_div, a min. Terms and factors are sorted by
// structure, so equal polynomials are equal values.
//
//   16*i*j + 3*min(i, n) - 1    two terms with factors [i, j] and [min(i, n)], constant -1
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace tw::algebra {

// A total order by structure: variables first, numbers last
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
  // The coefficient of the term that is just this atom; 0: there is none
  int64_t coefficient_of(const Expr& atom) const;
  // The atom if p = 1 * atom + constant, or null
  const Expr* single_atom() const;
};

Poly atom(Expr e);
Poly add(const Poly& a, const Poly& b, int64_t scale_of_b = 1);
Poly sum(const std::vector<Poly>& parts);
Poly scale(const Poly& a, int64_t factor);
Poly multiply(const Poly& a, const Poly& b);
bool same(const Poly& a, const Poly& b);
// True: p contains data, and its sum may leave 64 bits. The value is then p modulo 2^64, and no
// order follows from p. False for a single atom, which is the value itself.
bool may_wrap(const Poly& p);
// True: the numbers of a + scale_of_b * b fit 64 bits. add then keeps its order among numbers of
// any size.
bool numbers_fit(const Poly& a, const Poly& b, int64_t scale_of_b = 1);
// may_wrap for a + scale_of_b * b; false without data
bool sum_may_wrap(const Poly& a, const Poly& b, int64_t scale_of_b = 1);
// p = coefficient * atom + rest. Neither part contains the atom as a factor. nullopt: the atom
// occurs squared.
struct Split {
  Poly coefficient, rest;
};
std::optional<Split> split_on(const Poly& p, const Expr& atom);
std::vector<Expr> atoms_of(const Poly& p);  // every factor once, in term order

Poly parse(const Expr& e);    // opens sums and products; other nodes become atoms
Expr to_expr(const Poly& p);  // positive terms first, the constant last

// True: e is a chain of so many sums and differences that adding all operands at once is cheaper.
bool is_long_sum(const Expr& e);
// The polynomial of a long sum, from the polynomials that `part` makes of its operands
Poly sum_of(const Expr& e, const std::function<Poly(const Expr&)>& part);

}  // namespace tw::algebra
