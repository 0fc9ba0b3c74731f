#include "ir/simplify/simplifier.h"

#include "ir/scalar_ops.h"
#include "support/diag.h"

namespace tw::algebra {
namespace {

constexpr size_t kMaxProductTerms = 64;  // larger products stay products

const expr::Binary* as_int_binary(const Expr& e, BinaryOp op) {
  return e.type() == DType::i64 ? as_binary(e, op) : nullptr;
}

bool is_idempotent(BinaryOp op) {
  return op == BinaryOp::min || op == BinaryOp::max || op == BinaryOp::bit_and ||
         op == BinaryOp::bit_or;
}

}  // namespace

Poly Simplifier::normal(const Expr& e) {
  TW_CHECK(e.type() == DType::i64, "an index expression of type {0}", dtype_name(e.type()));
  return match(
      e, [](const expr::Int& number) { return Poly(number.value); },
      [&](const expr::Var& variable) {
        auto range = prover_.ranges().find(variable.name);
        if (range == prover_.ranges().end()) return atom(e);
        auto min = as_const(range->second.min), max = as_const(range->second.max);
        return min && max && *min == *max ? Poly(*min) : atom(e);
      },
      [&](const expr::Binary& made) {
        if (is_long_sum(e)) return tidy(sum_of(e, [&](const Expr& part) { return normal(part); }));
        return normal_kind(made);
      },
      [&](const expr::Unary& made) { return normal_kind(made); },
      [&](const expr::Select& choice) { return normal_kind(choice); },
      [&](const expr::Load& read) {
        std::vector<Expr> indices;
        for (const Expr& index : read.indices) indices.push_back(run(index));
        return atom(load(read.buffer, e->type, std::move(indices)));
      },
      [&](const expr::Cast& made) { return parse(cast(e->type, run(made.a), made.saturate)); },
      [&](const expr::Float&) { return atom(e); });
}

Poly Simplifier::normal_kind(const expr::Unary& e) {
  if (e.op == UnaryOp::neg) return scale(normal(e.a), -1);
  Expr simpler = unary(e.op, run(e.a));
  const auto* left = as<expr::Unary>(simpler);
  if (e.op != UnaryOp::abs || !left) return parse(simpler);
  Poly x = parse(left->a);
  if (may_wrap(x)) return atom(simpler);
  if (prover_.at_least(x, 0)) return x;
  if (prover_.at_most(x, 0)) return scale(x, -1);
  return atom(simpler);
}

Poly Simplifier::normal_kind(const expr::Select& e) {
  Expr condition = run(e.condition);
  if (auto known = as_const(condition)) return normal(*known ? e.then : e.otherwise);
  Poly a = normal(e.then), b = normal(e.otherwise);
  return same(a, b) ? a : atom(select(condition, to_expr(a), to_expr(b)));
}

Poly Simplifier::normal_kind(const expr::Binary& e) {
  Poly a = normal(e.a), b = normal(e.b);
  switch (e.op) {
    case BinaryOp::add: return tidy(add(a, b));
    case BinaryOp::sub: return tidy(add(a, b, -1));
    case BinaryOp::mul:
      if (a.terms.size() * b.terms.size() <= kMaxProductTerms) return tidy(multiply(a, b));
      break;
    case BinaryOp::floor_div: return divide(a, b);
    case BinaryOp::floor_mod: return remainder(a, b);
    case BinaryOp::div:
      if (!may_wrap(a) && prover_.at_least(a, 0) && prover_.at_least(b, 1)) return divide(a, b);
      break;
    case BinaryOp::mod:
      if (!may_wrap(a) && prover_.at_least(a, 0) && prover_.at_least(b, 1)) return remainder(a, b);
      break;
    case BinaryOp::min: return extreme(true, a, b);
    case BinaryOp::max: return extreme(false, a, b);
    case BinaryOp::shl:
      if (b.is_constant() && b.constant >= 0 && b.constant < 63)
        return tidy(scale(a, int64_t{1} << b.constant));
      break;
    case BinaryOp::shr:
      if (b.is_constant() && b.constant >= 0 && b.constant < 63)
        return divide(a, Poly(int64_t{1} << b.constant));
      break;
    case BinaryOp::pow:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor: break;
  }
  Expr simpler = binary(e.op, to_expr(a), to_expr(b));
  return e.op == BinaryOp::mul ? atom(simpler) : parse(simpler);
}

// Applies r*d * (M // d) + r * (M % d) = r * M where the divisor d has symbols or r has factors.
bool Simplifier::join_symbolic(Poly& p) {
  constexpr size_t kMaxTerms = 8;
  for (const Term& t : p.terms) {
    for (size_t i = 0; i < t.factors.size(); ++i) {
      const auto* f = as_int_binary(t.factors[i], BinaryOp::floor_mod);
      if (!f || (as_const(f->b) && t.factors.size() == 1)) continue;
      const Poly m = parse(f->a), d = parse(f->b);
      if (m.terms.size() > kMaxTerms || d.terms.size() > kMaxTerms) continue;
      Poly own, rest(t.coefficient);
      own.terms.push_back(t);
      for (size_t k = 0; k < t.factors.size(); ++k)
        if (k != i) rest = multiply(rest, atom(t.factors[k]));
      Poly joined = add(add(add(p, own, -1), multiply(rest, multiply(d, divide(m, d))), -1),
                        multiply(rest, m));
      if (joined.terms.size() >= p.terms.size()) continue;
      p = std::move(joined);
      return true;
    }
  }
  return false;
}

// Applies k*d * (M // d) + k * (M % d) = k * M and k*c * ((x // c) % d) + k * (x % c) = k * (x % (c
// * d)).
bool Simplifier::join_once(Poly& p) {
  for (const Term& t : p.terms) {
    const auto* f = t.factors.size() == 1 ? as_int_binary(t.factors[0], BinaryOp::floor_mod)
                                          : nullptr;
    auto d = f ? as_const(f->b) : std::nullopt;
    if (!d || *d < 2) continue;
    Poly m = parse(f->a), quotient = divide_by(m, *d);
    int64_t k = t.coefficient;
    Poly without = add(p, atom(t.factors[0]), -k);
    Poly joined = add(add(without, quotient, -k * *d), m, k);
    if (joined.terms.size() < p.terms.size()) {
      p = joined;
      return true;
    }
    for (const Term& u : p.terms) {
      if (u.factors.size() != 1 || u.coefficient != k * *d) continue;
      const auto* g = as_int_binary(u.factors[0], BinaryOp::floor_mod);
      auto outer = g ? as_const(g->b) : std::nullopt;
      if (!outer || *outer < 2 || *outer > INT64_MAX / *d || !same(parse(g->a), quotient)) continue;
      p = add(add(without, atom(u.factors[0]), -u.coefficient), remainder_by(m, *outer * *d), k);
      return true;
    }
  }
  return false;
}

// Rewrites k * min(a, b) + c*t to k * min(a + c/k*t, b + c/k*t) if t cancels inside.
bool Simplifier::absorb_once(Poly& p) {
  for (const Term& t : p.terms) {
    if (t.factors.size() != 1) continue;
    const Expr& m = t.factors[0];
    const auto *smaller = as_int_binary(m, BinaryOp::min),
               *larger = as_int_binary(m, BinaryOp::max);
    if (!smaller && !larger) continue;
    const bool is_min = smaller != nullptr;
    const expr::Binary& end = is_min ? *smaller : *larger;
    Poly a = parse(end.a), b = parse(end.b);
    for (const Term& u : p.terms) {
      if (&u == &t || u.coefficient % t.coefficient) continue;
      Poly moved;
      moved.terms.push_back({u.factors, u.coefficient / t.coefficient});
      Poly sum_a = add(a, moved), sum_b = add(b, moved);
      if (sum_a.terms.size() >= a.terms.size() && sum_b.terms.size() >= b.terms.size()) continue;
      if (sum_may_wrap(a, moved) || sum_may_wrap(b, moved)) continue;
      if (may_wrap(a) || may_wrap(b)) continue;
      Poly rest = add(add(p, moved, -t.coefficient), atom(m), -t.coefficient);
      p = add(rest, extreme(is_min, sum_a, sum_b), t.coefficient);
      return true;
    }
  }
  return false;
}

Poly Simplifier::tidy(Poly p) {
  constexpr int kMaxSteps = 64;
  for (int i = 0; i < kMaxSteps; ++i)
    if (!join_once(p) && !join_symbolic(p) && !absorb_once(p)) break;
  return p;
}

Expr Simplifier::run_binary(const expr::Binary& e) {
  if (is_comparison(e.op) && e.a.type() == DType::i64)
    return compare_ints(e.op, normal(e.a), normal(e.b));
  Expr a = run(e.a), b = run(e.b);
  if (e.op == BinaryOp::logical_and || e.op == BinaryOp::logical_or) return logic(e.op, a, b);
  if (!is_float(a.type()) && equal(a, b)) {
    if (is_comparison(e.op)) return bool_imm(e.op == BinaryOp::le || e.op == BinaryOp::eq);
    if (is_idempotent(e.op)) return a;
  }
  return binary(e.op, a, b);
}

Expr Simplifier::run(const Expr& e) {
  if (!e.defined()) return e;
  if (e.type() == DType::i64) return to_expr(normal(e));
  if (const auto* made = as_unary(e, UnaryOp::logical_not)) return negate(run(made->a));
  if (const auto* made = as<expr::Binary>(e)) return run_binary(*made);
  if (const auto* choice = as<expr::Select>(e)) {
    Expr condition = run(choice->condition);
    if (auto known = as_const(condition)) return run(*known ? choice->then : choice->otherwise);
    Expr a = run(choice->then), b = run(choice->otherwise);
    return equal(a, b) ? a : select(condition, a, b);
  }
  return with_operands(e, [&](const Expr& operand) { return run(operand); });
}

}  // namespace tw::algebra
