// The rewriting half of simplify(). It brings i64 expressions into polynomial normal form and
// rewrites all others bottom-up.
#pragma once
#include "ir/simplify/prover.h"

namespace tw::algebra {

class Simplifier {
 public:
  explicit Simplifier(const Ranges& ranges) : prover_(ranges) {}
  Expr run(const Expr& e);     // takes any type
  Poly normal(const Expr& e);  // takes i64 only
  Prover& prover() { return prover_; }
  // Joins a // b * b + a % b, and sums with min/max whose terms cancel.
  Poly tidy(Poly p);
  // Rules of div_mod.cpp, for normal polynomials
  Poly divide(const Poly& p, const Poly& divisor);
  Poly remainder(const Poly& p, const Poly& divisor);
  // Rules of compare.cpp
  Poly extreme(bool is_min, const Poly& a, const Poly& b);
  Expr compare_ints(BinaryOp op, const Poly& a, const Poly& b);
  Expr logic(BinaryOp op, const Expr& a, const Expr& b);
  Expr negate(const Expr& condition);

 private:
  Poly normal_kind(const expr::Binary& e);
  Poly normal_kind(const expr::Unary& e);
  Poly normal_kind(const expr::Select& e);
  Poly divide_by(const Poly& p, int64_t d);
  Poly remainder_by(const Poly& p, int64_t d);
  // The quotient is in Split::coefficient.
  std::optional<Split> divide_exactly(const Poly& p, const Poly& divisor);
  // p = size * quotient + rest and divisor = size * count, with 0 <= rest < size. Then p // divisor
  // is quotient // count, and p % divisor is size * (quotient % count) + rest. nullopt: no part of
  // the divisor's factors is such a size.
  struct Blocks {
    Poly size, count, quotient, rest;
  };
  std::optional<Blocks> blocks_of(const Poly& p, const Poly& divisor);
  bool join_once(Poly& p);
  bool join_symbolic(Poly& p);
  bool absorb_once(Poly& p);
  Expr run_binary(const expr::Binary& e);

  Prover prover_;
};

}  // namespace tw::algebra
