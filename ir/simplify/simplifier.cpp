#include "ir/simplify/simplifier.h"

#include "ir/scalar_ops.h"
#include "support/diag.h"

namespace tw::algebra {
namespace {

constexpr size_t kMaxProductTerms = 64;  // larger products stay products

bool is_int_binary(const Expr& e, BinaryOp op) {
  return e->kind == ExprKind::binary && e->binary == op && e.type() == DType::i64;
}

bool is_idempotent(BinaryOp op) {
  return op == BinaryOp::min || op == BinaryOp::max || op == BinaryOp::bit_and ||
         op == BinaryOp::bit_or;
}

}  // namespace

Poly Simplifier::normal(const Expr& e) {
  TW_CHECK(e.type() == DType::i64, "an index expression of type {0}", dtype_name(e.type()));
  switch (e->kind) {
    case ExprKind::int_imm: return Poly(e->int_value);
    case ExprKind::var: {
      auto range = prover_.ranges().find(e->name);
      if (range == prover_.ranges().end()) return atom(e);
      auto min = as_const(range->second.min), max = as_const(range->second.max);
      return min && max && *min == *max ? Poly(*min) : atom(e);
    }
    case ExprKind::unary: {
      if (e->unary == UnaryOp::neg) return scale(normal(e->args[0]), -1);
      Expr simpler = unary(e->unary, run(e->args[0]));
      if (e->unary != UnaryOp::abs || simpler->kind != ExprKind::unary) return parse(simpler);
      Poly x = parse(simpler->args[0]);
      if (may_wrap(x)) return atom(simpler);
      if (prover_.at_least(x, 0)) return x;
      if (prover_.at_most(x, 0)) return scale(x, -1);
      return atom(simpler);
    }
    case ExprKind::binary:
      if (is_long_sum(e)) return tidy(sum_of(e, [&](const Expr& part) { return normal(part); }));
      return normal_binary(*e);
    case ExprKind::select: {
      Expr condition = run(e->args[0]);
      if (auto known = as_const(condition)) return normal(e->args[*known ? 1 : 2]);
      Poly a = normal(e->args[1]), b = normal(e->args[2]);
      return same(a, b) ? a : atom(select(condition, to_expr(a), to_expr(b)));
    }
    case ExprKind::load:
    case ExprKind::cast:
    case ExprKind::float_imm: break;
  }
  std::vector<Expr> args;
  for (const Expr& arg : e->args) args.push_back(run(arg));
  if (e->kind == ExprKind::load) return atom(load(e->buffer, e->type, std::move(args)));
  return parse(cast(e->type, args[0], e->saturate));
}

Poly Simplifier::normal_binary(const ExprNode& e) {
  Poly a = normal(e.args[0]), b = normal(e.args[1]);
  switch (e.binary) {
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
  Expr simpler = binary(e.binary, to_expr(a), to_expr(b));
  return e.binary == BinaryOp::mul ? atom(simpler) : parse(simpler);
}

// r*d * (M // d) + r * (M % d) = r * M for a divisor of symbols.
bool Simplifier::join_symbolic(Poly& p) {
  constexpr size_t kMaxTerms = 8;
  for (const Term& t : p.terms) {
    for (size_t i = 0; i < t.factors.size(); ++i) {
      const Expr& f = t.factors[i];
      if (!is_int_binary(f, BinaryOp::floor_mod) || as_const(f->args[1])) continue;
      const Poly m = parse(f->args[0]), d = parse(f->args[1]);
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

// k*d * (M // d) + k * (M % d) = k * M, and k*c * ((x // c) % d) + k * (x % c) = k * (x % (c * d)).
bool Simplifier::join_once(Poly& p) {
  for (const Term& t : p.terms) {
    if (t.factors.size() != 1 || !is_int_binary(t.factors[0], BinaryOp::floor_mod)) continue;
    auto d = as_const(t.factors[0]->args[1]);
    if (!d || *d < 2) continue;
    Poly m = parse(t.factors[0]->args[0]), quotient = divide_by(m, *d);
    int64_t k = t.coefficient;
    Poly without = add(p, atom(t.factors[0]), -k);
    Poly joined = add(add(without, quotient, -k * *d), m, k);
    if (joined.terms.size() < p.terms.size()) {
      p = joined;
      return true;
    }
    for (const Term& u : p.terms) {
      if (u.factors.size() != 1 || u.coefficient != k * *d ||
          !is_int_binary(u.factors[0], BinaryOp::floor_mod))
        continue;
      auto outer = as_const(u.factors[0]->args[1]);
      if (!outer || *outer < 2 || *outer > INT64_MAX / *d ||
          !same(parse(u.factors[0]->args[0]), quotient))
        continue;
      p = add(add(without, atom(u.factors[0]), -u.coefficient), remainder_by(m, *outer * *d), k);
      return true;
    }
  }
  return false;
}

// k * min(a, b) + c*t becomes k * min(a + c/k*t, b + c/k*t) when t cancels inside.
bool Simplifier::absorb_once(Poly& p) {
  for (const Term& t : p.terms) {
    if (t.factors.size() != 1) continue;
    const Expr& m = t.factors[0];
    bool is_min = is_int_binary(m, BinaryOp::min);
    if (!is_min && !is_int_binary(m, BinaryOp::max)) continue;
    Poly a = parse(m->args[0]), b = parse(m->args[1]);
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

Expr Simplifier::run_binary(const Expr& e) {
  const Expr &x = e->args[0], &y = e->args[1];
  if (is_comparison(e->binary) && x.type() == DType::i64)
    return compare_ints(e->binary, normal(x), normal(y));
  Expr a = run(x), b = run(y);
  if (e->binary == BinaryOp::logical_and || e->binary == BinaryOp::logical_or)
    return logic(e->binary, a, b);
  if (!is_float(a.type()) && equal(a, b)) {
    if (is_comparison(e->binary))
      return bool_imm(e->binary == BinaryOp::le || e->binary == BinaryOp::eq);
    if (is_idempotent(e->binary)) return a;
  }
  return binary(e->binary, a, b);
}

Expr Simplifier::run(const Expr& e) {
  if (!e.defined()) return e;
  if (e.type() == DType::i64) return to_expr(normal(e));
  switch (e->kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::var: return e;
    case ExprKind::load: {
      std::vector<Expr> indices;
      for (const Expr& index : e->args) indices.push_back(run(index));
      return load(e->buffer, e->type, std::move(indices));
    }
    case ExprKind::unary:
      if (e->unary == UnaryOp::logical_not) return negate(run(e->args[0]));
      return unary(e->unary, run(e->args[0]));
    case ExprKind::binary: return run_binary(e);
    case ExprKind::select: {
      Expr condition = run(e->args[0]);
      if (auto known = as_const(condition)) return run(e->args[*known ? 1 : 2]);
      Expr a = run(e->args[1]), b = run(e->args[2]);
      return equal(a, b) ? a : select(condition, a, b);
    }
    case ExprKind::cast: return cast(e->type, run(e->args[0]), e->saturate);
  }
  TW_UNREACHABLE("bad expression kind");
}

}  // namespace tw::algebra
