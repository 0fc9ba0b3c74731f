// min/max, comparisons and logic.
#include <algorithm>
#include <numeric>

#include "ir/scalar_ops.h"
#include "ir/simplify/simplifier.h"
#include "support/diag.h"

namespace tw::algebra {
namespace {

constexpr size_t kMaxOperands = 8;  // limit for one min or max

// Opens 1 * min(u, v) + rest into u + rest and v + rest, so nested minima become one list.
void flatten(BinaryOp op, const Poly& p, std::vector<Poly>& out) {
  for (const Term& t : p.terms) {
    const Expr& m = t.factors[0];
    const auto* end = as_binary(m, op);
    if (t.factors.size() != 1 || t.coefficient != 1 || !end || m.type() != DType::i64) continue;
    Poly rest = add(p, atom(m), -1);
    const Poly first = parse(end->a), second = parse(end->b);
    if (sum_may_wrap(first, rest) || sum_may_wrap(second, rest)) continue;
    flatten(op, add(first, rest), out);
    flatten(op, add(second, rest), out);
    return;
  }
  out.push_back(p);
}

bool ordered_before(const Poly& a, const Poly& b) { return compare(to_expr(a), to_expr(b)) < 0; }

// The terms that all operands share, and the smallest constant
Poly common_part(const std::vector<Poly>& operands) {
  Poly common;
  for (const Term& t : operands[0].terms) {
    bool everywhere = std::all_of(operands.begin(), operands.end(), [&](const Poly& p) {
      return std::any_of(p.terms.begin(), p.terms.end(), [&](const Term& u) {
        Poly a, b;
        a.terms.push_back(t);
        b.terms.push_back(u);
        return same(a, b);
      });
    });
    if (everywhere) common.terms.push_back(t);
  }
  common.constant = operands[0].constant;
  for (const Poly& p : operands) common.constant = std::min(common.constant, p.constant);
  return common;
}

int64_t gcd_of_coefficients(const Poly& p) {
  int64_t g = 0;
  for (const Term& t : p.terms) g = std::gcd(g, t.coefficient);
  return g;
}

// Drops terms that cannot matter, and common factors: p < 0 equals floor(p / g) < 0.
Poly coarsest(Poly p, Prover& prover) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<int64_t> sizes;
    for (const Term& t : p.terms)
      if (t.coefficient != INT64_MIN) sizes.push_back(std::abs(t.coefficient));
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    for (int64_t g : sizes) {
      if (g < 2) break;
      Poly multiples, rest(p.constant);
      for (const Term& t : p.terms) {
        if (t.coefficient % g == 0) multiples.terms.push_back({t.factors, t.coefficient / g});
        else rest.terms.push_back(t);
      }
      auto block = prover.block_of(rest, g);
      if (!block) continue;
      multiples.constant = *block;
      p = multiples;
      changed = true;
      break;
    }
  }
  return p;
}

// Positive terms go left and negative ones right; the constant goes where it is positive.
std::pair<Expr, Expr> sides(const Poly& p) {
  Poly left, right;
  for (const Term& t : p.terms) {
    if (t.coefficient > 0) left.terms.push_back(t);
    else right.terms.push_back({t.factors, -t.coefficient});
  }
  // A constant alone on one side may be negative.
  if (left.is_constant()) left.constant = p.constant;
  else if (right.is_constant() || p.constant < 0) right.constant = -p.constant;
  else left.constant = p.constant;
  return {to_expr(left), to_expr(right)};
}

// Decides a comparison of a and b by the bounds of a - b as an unbounded number.
std::optional<bool> ordered(BinaryOp op, const Bounds& difference) {
  const bool negative = difference.max && *difference.max < 0,
             positive = difference.min && *difference.min > 0;
  if (op == BinaryOp::eq || op == BinaryOp::ne)
    return negative || positive ? std::optional(op == BinaryOp::ne) : std::nullopt;
  if (negative || (op == BinaryOp::le && difference.max && *difference.max <= 0)) return true;
  if (positive || (op == BinaryOp::lt && difference.min && *difference.min >= 0)) return false;
  return std::nullopt;
}

}  // namespace

Poly Simplifier::extreme(bool is_min, const Poly& a, const Poly& b) {
  BinaryOp op = is_min ? BinaryOp::min : BinaryOp::max;
  if (may_wrap(a) || may_wrap(b)) return same(a, b) ? a : atom(binary(op, to_expr(a), to_expr(b)));
  std::vector<Poly> found, operands;
  flatten(op, a, found);
  flatten(op, b, found);
  if (found.size() > kMaxOperands) found = {a, b};
  auto beats = [&](const Poly& x, const Poly& y) {  // true: x makes y redundant
    if (!numbers_fit(x, y, -1)) return false;
    Poly difference = tidy(add(x, y, -1));
    return is_min ? prover_.at_most(difference, 0) : prover_.at_least(difference, 0);
  };
  for (Poly& candidate : found) {
    candidate = tidy(std::move(candidate));
    bool superfluous = std::any_of(operands.begin(), operands.end(),
                                   [&](const Poly& p) { return beats(p, candidate); });
    if (superfluous) continue;
    std::erase_if(operands, [&](const Poly& p) { return beats(candidate, p); });
    operands.push_back(candidate);
  }
  if (operands.size() == 1) return operands[0];
  Poly common = common_part(operands);
  if (std::ranges::any_of(operands, [&](const Poly& p) { return sum_may_wrap(p, common, -1); }))
    common = Poly();
  for (Poly& p : operands) p = tidy(add(p, common, -1));
  std::sort(operands.begin(), operands.end(), ordered_before);
  Expr chain = to_expr(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) chain = binary(op, chain, to_expr(operands[i]));
  return add(atom(chain), common);
}

Expr Simplifier::compare_ints(BinaryOp op, const Poly& a, const Poly& b) {
  const bool wraps = may_wrap(a) || may_wrap(b), apart = sum_may_wrap(a, b, -1);
  Poly p = tidy(add(a, b, -1));
  // a - b may leave 64 bits even if a and b do not.
  if (wraps || apart || may_wrap(p) || (op == BinaryOp::le && sum_may_wrap(p, Poly(-1)))) {
    if (same(a, b)) return bool_imm(op == BinaryOp::le || op == BinaryOp::eq);
    if (!wraps && numbers_fit(a, b, -1))
      if (const auto known = ordered(op, prover_.bounds(p))) return bool_imm(*known);
    return binary(op, to_expr(a), to_expr(b));
  }
  if (op == BinaryOp::lt || op == BinaryOp::le) {
    if (op == BinaryOp::le) p.constant -= 1;  // a <= b is a - b - 1 < 0
    if (prover_.at_most(p, -1)) return bool_imm(true);
    if (prover_.at_least(p, 0)) return bool_imm(false);
    auto [left, right] = sides(coarsest(p, prover_));
    return lt(left, right);
  }
  TW_CHECK(op == BinaryOp::eq || op == BinaryOp::ne, "{0} is no comparison", op_name(op));
  bool when_equal = op == BinaryOp::eq;
  int64_t g = gcd_of_coefficients(p);
  if (g > 1 && p.constant % g == 0) {
    for (Term& t : p.terms) t.coefficient /= g;
    p.constant /= g;
  } else if (g > 1) {
    return bool_imm(!when_equal);
  }
  Bounds bounds = prover_.bounds(p);
  if ((bounds.min && *bounds.min > 0) || (bounds.max && *bounds.max < 0))
    return bool_imm(!when_equal);
  if (bounds.min == 0 && bounds.max == 0) return bool_imm(when_equal);
  if (p.terms[0].coefficient < 0) p = scale(p, -1);
  auto [left, right] = sides(p);
  return binary(op, left, right);
}

Expr Simplifier::negate(const Expr& condition) {
  if (auto known = as_const(condition)) return bool_imm(!*known);
  if (const auto* opposite = as_unary(condition, UnaryOp::logical_not)) return opposite->a;
  const auto* relation = as<expr::Binary>(condition);
  if (relation && is_comparison(relation->op) && relation->a.type() == DType::i64) {
    const Expr &a = relation->a, &b = relation->b;
    if (relation->op == BinaryOp::lt) return compare_ints(BinaryOp::le, parse(b), parse(a));
    if (relation->op == BinaryOp::le) return compare_ints(BinaryOp::lt, parse(b), parse(a));
    return binary(relation->op == BinaryOp::eq ? BinaryOp::ne : BinaryOp::eq, a, b);
  }
  return unary(UnaryOp::logical_not, condition);
}

// Drops duplicates. The order stays, because a condition may guard the loads of the next one.
Expr Simplifier::logic(BinaryOp op, const Expr& a, const Expr& b) {
  bool neutral = op == BinaryOp::logical_and;
  std::vector<Expr> found, kept;
  auto collect = [&](auto& self, const Expr& e) -> void {
    if (const auto* both = as_binary(e, op)) {
      self(self, both->a);
      self(self, both->b);
    } else {
      found.push_back(e);
    }
  };
  collect(collect, a);
  collect(collect, b);
  for (const Expr& e : found) {
    if (auto known = as_const(e)) {
      if ((*known != 0) == neutral) continue;
      return bool_imm(!neutral);
    }
    Expr opposite = negate(e);
    if (std::any_of(kept.begin(), kept.end(), [&](const Expr& k) { return equal(k, opposite); }))
      return bool_imm(!neutral);
    if (std::none_of(kept.begin(), kept.end(), [&](const Expr& k) { return equal(k, e); }))
      kept.push_back(e);
  }
  if (kept.empty()) return bool_imm(neutral);
  Expr chain = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) chain = binary(op, chain, kept[i]);
  return chain;
}

}  // namespace tw::algebra
