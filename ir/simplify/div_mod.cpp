// floor_div and floor_mod. Both reduce the dividend modulo the divisor in the same way, so that a
// // d and a % d of the same a can be joined again. Throughout, P = d*Q + R.
#include <algorithm>
#include <numeric>

#include "ir/scalar_ops.h"
#include "ir/simplify/simplifier.h"

namespace tw::algebra {
namespace {

struct Parts {
  Poly multiples, rest;
};  // rest includes the constant

Parts split_multiples(const Poly& p, int64_t g) {
  Parts parts;
  parts.rest.constant = p.constant;
  for (const Term& t : p.terms)
    (t.coefficient % g == 0 ? parts.multiples : parts.rest).terms.push_back(t);
  return parts;
}

Poly over(Poly p, int64_t g) {
  for (Term& t : p.terms) t.coefficient /= g;
  p.constant /= g;
  return p;
}

// P = d * quotient + rest. Coefficients of rest are below d in magnitude, its constant is in [0,
// d).
struct Reduced {
  Poly quotient, rest;
};
Reduced reduce(const Poly& p, int64_t d) {
  Reduced r;
  for (const Term& t : p.terms) {
    if (int64_t q = t.coefficient / d) r.quotient.terms.push_back({t.factors, q});
    if (int64_t m = t.coefficient % d) r.rest.terms.push_back({t.factors, m});
  }
  r.quotient.constant = floor_div_int(p.constant, d);
  r.rest.constant = floor_mod_int(p.constant, d);
  return r;
}

// Divisors g > 1 of d that some coefficients share, largest first. The other terms may fit in a
// block of size g.
std::vector<int64_t> block_sizes(const Poly& p, int64_t d) {
  std::vector<int64_t> sizes = {d};
  for (const Term& t : p.terms)
    if (int64_t g = std::gcd(t.coefficient, d); g > 1) sizes.push_back(g);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

const expr::Binary* as_op(const Expr* e, BinaryOp op) {
  return e && e->type() == DType::i64 ? as_binary(*e, op) : nullptr;
}

// Drops the modulus of a term c * (x % a) inside P % d, where d divides c * a.
Poly drop_inner_moduli(const Poly& p, int64_t d) {
  Poly out = p;
  for (const Term& t : p.terms) {
    const auto* m = t.factors.size() == 1 ? as_op(&t.factors[0], BinaryOp::floor_mod) : nullptr;
    auto a = m ? as_const(m->b) : std::nullopt;
    if (!a || *a < 1 || static_cast<__int128>(t.coefficient) * *a % d != 0) continue;
    const Poly rest = add(out, atom(t.factors[0]), -t.coefficient), inner = parse(m->a);
    if (!sum_may_wrap(rest, inner, t.coefficient)) out = add(rest, inner, t.coefficient);
  }
  return out;
}

// The factors of a term without those of another one; nullopt: it does not have them all.
std::optional<std::vector<Expr>> without_factors(std::vector<Expr> factors,
                                                 const std::vector<Expr>& removed) {
  for (const Expr& f : removed) {
    const auto at = std::ranges::find_if(factors,
                                         [&](const Expr& x) { return compare(x, f) == 0; });
    if (at == factors.end()) return std::nullopt;
    factors.erase(at);
  }
  return factors;
}

Poly product_of(std::vector<Expr> factors, int64_t coefficient) {
  if (factors.empty()) return Poly(coefficient);
  Poly out;
  out.terms.push_back({std::move(factors), coefficient});
  return out;
}

}  // namespace

Poly Simplifier::divide_by(const Poly& p, int64_t d) {
  if (d == 1) return p;
  if (may_wrap(p)) return atom(floor_div(to_expr(p), d));
  for (int64_t g : block_sizes(p, d)) {
    auto [multiples, rest] = split_multiples(p, g);
    auto block = prover_.block_of(rest, g);
    if (!block) continue;
    Poly quotient = add(over(multiples, g), Poly(*block));  // floor(P / g)
    return g == d ? tidy(quotient) : divide_by(quotient, d / g);
  }
  auto [quotient, rest] = reduce(p, d);
  const Expr* single = rest.single_atom();
  if (const auto* inner = as_op(single, BinaryOp::floor_div)) {
    auto a = as_const(inner->b);
    if (a && *a >= 1 && *a <= INT64_MAX / d && rest.constant <= INT64_MAX / *a) {
      const Poly x = parse(inner->a), more(*a * rest.constant);
      if (!sum_may_wrap(x, more)) return tidy(add(quotient, divide_by(add(x, more), *a * d)));
    }
  }
  if (const auto* inner = as_op(single, BinaryOp::floor_mod); inner && rest.constant == 0) {
    auto a = as_const(inner->b);
    if (a && *a > d && *a % d == 0)
      return tidy(add(quotient, remainder_by(divide_by(parse(inner->a), d), *a / d)));
  }
  if (!quotient.is_constant() || quotient.constant != 0) {
    // The rest alone may be decidable, and only its quotient remains to be found.
    bool smaller = !same(rest, p);
    if (smaller) return tidy(add(quotient, divide_by(rest, d)));
  }
  return atom(floor_div(to_expr(rest), d));
}

Poly Simplifier::remainder_by(const Poly& p, int64_t d) {
  if (d == 1) return Poly();
  if (may_wrap(p)) return atom(floor_mod(to_expr(p), d));
  Poly flat = tidy(drop_inner_moduli(p, d));
  if (!same(flat, p)) return remainder_by(flat, d);
  for (int64_t g : block_sizes(p, d)) {
    auto [multiples, rest] = split_multiples(p, g);
    auto block = prover_.block_of(rest, g);
    if (!block) continue;
    rest.constant -= *block * g;  // puts rest in [0, g)
    if (g == d) return tidy(rest);
    return tidy(add(rest, remainder_by(add(over(multiples, g), Poly(*block)), d / g), g));
  }
  Poly rest = reduce(p, d).rest;
  if (!same(rest, p)) return remainder_by(rest, d);
  return atom(floor_mod(to_expr(rest), d));
}

// Polynomial long division by the divisor's first term: p = quotient * divisor + rest. nullopt:
// nothing divides.
std::optional<Split> Simplifier::divide_exactly(const Poly& p, const Poly& divisor) {
  const Term& lead = divisor.terms[0];
  Split out{Poly(), p};
  constexpr int kMaxSteps = 32;
  for (int step = 0; step < kMaxSteps; ++step) {
    bool found = false;
    for (const Term& t : out.rest.terms) {
      if (t.coefficient % lead.coefficient) continue;
      std::optional<std::vector<Expr>> left = without_factors(t.factors, lead.factors);
      if (!left) continue;
      const Poly q = product_of(std::move(*left), t.coefficient / lead.coefficient);
      out.coefficient = add(out.coefficient, q);
      out.rest = add(out.rest, multiply(q, divisor), -1);
      found = true;
      break;
    }
    if (!found) break;
  }
  if (out.coefficient.is_constant() && out.coefficient.constant == 0) return std::nullopt;
  return out;
}

std::optional<Simplifier::Blocks> Simplifier::blocks_of(const Poly& p, const Poly& divisor) {
  constexpr size_t kMostFactors = 4;  // whose subsets are tried
  if (divisor.terms.size() != 1 || divisor.constant != 0) return std::nullopt;
  const Term& whole = divisor.terms[0];
  if (whole.factors.size() > kMostFactors || whole.coefficient < 1) return std::nullopt;
  const uint32_t all = (1u << whole.factors.size()) - 1;
  for (uint32_t chosen = all; chosen > 0; --chosen) {
    Term size, count;
    for (size_t i = 0; i < whole.factors.size(); ++i)
      (chosen >> i & 1 ? size : count).factors.push_back(whole.factors[i]);
    size.coefficient = 1, count.coefficient = whole.coefficient;
    if (count.factors.empty() && count.coefficient == 1) continue;
    Blocks blocks;
    blocks.size.terms = {size};
    blocks.count = product_of(std::move(count.factors), count.coefficient);
    blocks.rest.constant = p.constant;
    for (const Term& t : p.terms) {
      std::optional<std::vector<Expr>> left = without_factors(t.factors, size.factors);
      if (!left) blocks.rest.terms.push_back(t);
      else blocks.quotient = add(blocks.quotient, product_of(std::move(*left), t.coefficient));
    }
    if (prover_.at_least(blocks.rest, 0) &&
        prover_.at_most(add(blocks.rest, blocks.size, -1), -1) && prover_.at_least(blocks.size, 1))
      return blocks;
  }
  return std::nullopt;
}

Poly Simplifier::divide(const Poly& p, const Poly& divisor) {
  if (divisor.is_constant()) {
    int64_t d = divisor.constant;
    if (d > 0) return divide_by(p, d);
    if (d < 0 && d != INT64_MIN && !may_wrap(p) && !sum_may_wrap(Poly(), p, -1))
      return divide_by(scale(p, -1), -d);
    return atom(floor_div(to_expr(p), d));
  }
  if (!may_wrap(p) && !may_wrap(divisor) && prover_.at_least(divisor, 1)) {
    std::optional<Split> exact = divide_exactly(p, divisor);
    Split parts = exact.value_or(Split{Poly(), p});
    if (prover_.at_least(parts.rest, 0) && prover_.at_most(add(parts.rest, divisor, -1), -1))
      return tidy(parts.coefficient);
    if (const auto blocks = blocks_of(p, divisor))
      return tidy(divide(blocks->quotient, blocks->count));
    if (exact) return tidy(add(exact->coefficient, divide(exact->rest, divisor)));
  }
  return parse(floor_div(to_expr(p), to_expr(divisor)));
}

Poly Simplifier::remainder(const Poly& p, const Poly& divisor) {
  if (divisor.is_constant()) {
    int64_t d = divisor.constant;
    return d > 0 ? remainder_by(p, d) : parse(floor_mod(to_expr(p), d));
  }
  if (!may_wrap(p) && !may_wrap(divisor) && prover_.at_least(divisor, 1)) {
    std::optional<Split> exact = divide_exactly(p, divisor);
    Split parts = exact.value_or(Split{Poly(), p});
    if (prover_.at_least(parts.rest, 0) && prover_.at_most(add(parts.rest, divisor, -1), -1))
      return parts.rest;
    if (const auto blocks = blocks_of(p, divisor))
      return tidy(
          add(blocks->rest, multiply(blocks->size, remainder(blocks->quotient, blocks->count))));
    if (exact) return remainder(exact->rest, divisor);
  }
  return parse(floor_mod(to_expr(p), to_expr(divisor)));
}

}  // namespace tw::algebra
