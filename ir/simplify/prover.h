// Finds constant bounds of polynomials over ranges whose ends may be symbolic. It eliminates one
// variable after the other by an end of its range, then adds intervals. Polynomials count as
// numbers of any size here; a caller that asks about a value asks may_wrap first.
#pragma once
#include "ir/simplify.h"
#include "ir/simplify/poly.h"

namespace tw::algebra {

class Prover {
 public:
  explicit Prover(const Ranges& ranges) : ranges_(ranges) {}
  Bounds bounds(const Poly& p);
  std::optional<int64_t> lower(const Poly& p);
  std::optional<int64_t> upper(const Poly& p);
  bool at_least(const Poly& p, int64_t value) {
    auto l = lower(p);
    return l && *l >= value;
  }
  bool at_most(const Poly& p, int64_t value) {
    auto u = upper(p);
    return u && *u <= value;
  }
  // If every value of p lies in one block [k*size, (k+1)*size), returns k.
  std::optional<int64_t> block_of(const Poly& p, int64_t size);
  Bounds atom_bounds(const Expr& e, int depth);
  const Ranges& ranges() const { return ranges_; }
  // Notes that the variables of e have values: the extents of their ranges are not empty.
  void assume_values_of(const Expr& e);

 private:
  Bounds interval(const Poly& p, int depth);
  Bounds expr_interval(const Expr& e, int depth);
  Bounds own_bounds(const Expr& e, int depth);
  Bounds unary_bounds(const expr::Unary& e, int depth);
  Bounds binary_bounds(const expr::Binary& e, int depth);
  std::optional<int64_t> lower(const Poly& p, int depth);
  bool in_its_interval(const Poly& p, const Expr& atom) const;
  std::optional<int64_t> lower_without(const Poly& p, const Expr& atom, int depth);
  std::optional<int64_t> lower_of_quotients(const Term& above, const Term& below, int depth);
  std::optional<int64_t> lower_by_quotients(const Poly& p, int depth);

  const Ranges& ranges_;
  std::vector<std::pair<Expr, int64_t>> least_;  // atoms and the least that non-empty extents allow
  int budget_ = 0;
};

}  // namespace tw::algebra
