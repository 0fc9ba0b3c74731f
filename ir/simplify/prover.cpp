#include "ir/simplify/prover.h"

#include <algorithm>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "support/diag.h"

namespace tw::algebra {
namespace {

using Limit = std::optional<int64_t>;
constexpr int kDepth = 5;      // limit of nested eliminations
constexpr int kBudget = 120;   // limit of eliminations for one question
constexpr int kAtomDepth = 6;  // limit of nested atoms that intervals look through

Limit fit(__int128 v) {
  if (v > INT64_MAX || v < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(v);
}
Limit sum(Limit a, Limit b) { return a && b ? fit(static_cast<__int128>(*a) + *b) : std::nullopt; }
Limit times(Limit a, int64_t k) { return a ? fit(static_cast<__int128>(*a) * k) : std::nullopt; }
Limit smaller(Limit a, Limit b) { return a && b ? std::min(a, b) : std::nullopt; }
Limit larger(Limit a, Limit b) { return a && b ? std::max(a, b) : std::nullopt; }
Limit either_larger(Limit a, Limit b) { return !a ? b : !b ? a : std::max(a, b); }
Limit either_smaller(Limit a, Limit b) { return !a ? b : !b ? a : std::min(a, b); }

Bounds scaled(const Bounds& b, int64_t k) {
  return k >= 0 ? Bounds{times(b.min, k), times(b.max, k)}
                : Bounds{times(b.max, k), times(b.min, k)};
}

Bounds product(const Bounds& a, const Bounds& b) {
  if (a.min && a.max && b.min && b.max) {
    Bounds x = scaled(a, *b.min), y = scaled(a, *b.max);
    return {smaller(x.min, y.min), larger(x.max, y.max)};
  }
  auto non_negative = [](const Bounds& v) { return v.min && *v.min >= 0; };
  if (non_negative(a) && non_negative(b))
    return {times(a.min, *b.min), a.max && b.max ? times(a.max, *b.max) : std::nullopt};
  return {};
}

Bounds type_bounds(DType t) {
  switch (t) {
    case DType::boolean: return {0, 1};
    case DType::i8: return {INT8_MIN, INT8_MAX};
    case DType::i16: return {INT16_MIN, INT16_MAX};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    case DType::u8: return {0, UINT8_MAX};
    case DType::u16: return {0, UINT16_MAX};
    case DType::u32: return {0, UINT32_MAX};
    case DType::i64:
    case DType::u64:
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: return {};
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return {lowest_of(t), highest_of(t)};
    case DType::string: return {};
  }
  TW_UNREACHABLE("bad element type");
}

Bounds quotient(const Bounds& x, const Bounds& d) {
  if (!d.min || *d.min < 1) return {};
  auto over = [](Limit v, Limit by) -> Limit {
    if (!v || !by) return std::nullopt;
    return floor_div_int(*v, *by);
  };
  Bounds out;
  if (x.min) out.min = *x.min >= 0 ? (d.max ? over(x.min, d.max) : Limit(0)) : over(x.min, d.min);
  if (x.max) out.max = *x.max >= 0 ? over(x.max, d.min) : (d.max ? over(x.max, d.max) : Limit(-1));
  return out;
}

Bounds remainder(const Bounds& x, const Bounds& d) {
  if (!d.min || *d.min < 1) return {};
  Bounds out{0, sum(d.max, Limit(-1))};
  if (!x.min || *x.min < 0) return out;
  out.max = either_smaller(out.max, x.max);
  if (x.max && *x.max < *d.min) return x;
  if (d.min == d.max && x.max && floor_div_int(*x.min, *d.min) == floor_div_int(*x.max, *d.min))
    return {floor_mod_int(*x.min, *d.min), floor_mod_int(*x.max, *d.min)};
  return out;
}

}  // namespace

Bounds Prover::atom_bounds(const Expr& e, int depth) {
  Bounds bounds = own_bounds(e, depth);
  for (const auto& [known, least] : least_)
    if (compare(known, e) == 0) bounds.min = either_larger(bounds.min, least);
  return bounds;
}

void Prover::assume_values_of(const Expr& e) {
  visit(e, [&](const Expr& part) {
    const std::string* name = var_name(part);
    const auto range = name ? ranges_.find(*name) : ranges_.end();
    if (range == ranges_.end() || !range->second.max.defined() || !range->second.min.defined() ||
        as_const(range->second.min).value_or(-1) < 0)
      return;
    const Poly last = parse(range->second.max);
    if (may_wrap(last) || last.terms.size() != 1 || last.constant >= 0) return;
    const Term& product = last.terms[0];
    if (product.coefficient < 1 || last.constant == INT64_MIN) return;
    if (product.factors.size() == 1)
      least_.emplace_back(product.factors[0], -floor_div_int(last.constant, product.coefficient));
    else
      for (const Expr& factor : product.factors)
        if (own_bounds(factor, kAtomDepth).min == 0) least_.emplace_back(factor, 1);
  });
}

Bounds Prover::own_bounds(const Expr& e, int depth) {
  const Bounds own = type_bounds(e.type());
  if (depth <= 0) return own;
  const bool wide = e.type() == DType::i64;
  return match(
      e, [](const expr::Int& number) { return Bounds{number.value, number.value}; },
      [&](const expr::Var& variable) {
        auto range = ranges_.find(variable.name);
        if (range == ranges_.end()) return own;
        Bounds out;
        if (range->second.min.defined()) out.min = expr_interval(range->second.min, depth - 1).min;
        if (range->second.max.defined()) out.max = expr_interval(range->second.max, depth - 1).max;
        return out;
      },
      [&](const expr::Select& choice) {
        Bounds a = expr_interval(choice.then, depth - 1),
               b = expr_interval(choice.otherwise, depth - 1);
        return Bounds{smaller(a.min, b.min), larger(a.max, b.max)};
      },
      [&](const expr::Cast& converted) {
        const Expr& a = converted.a;
        if (!is_int(a.type()) && a.type() != DType::boolean) return own;
        Bounds from = a.type() == DType::i64 ? expr_interval(a, depth - 1)
                                             : atom_bounds(a, depth - 1);
        bool fits = from.min && from.max &&
                    (!own.min || (*from.min >= *own.min && *from.max <= *own.max)) &&
                    (e.type() != DType::u64 || *from.min >= 0);
        return fits ? from : own;
      },
      [&](const expr::Unary& made) { return wide ? unary_bounds(made, depth) : own; },
      [&](const expr::Binary& made) { return wide ? binary_bounds(made, depth) : own; },
      [&](const expr::Float&) { return own; }, [&](const expr::Load&) { return own; });
}

Bounds Prover::unary_bounds(const expr::Unary& e, int depth) {
  if (e.op == UnaryOp::sign) return {-1, 1};
  if (e.op != UnaryOp::abs) return {};
  // abs(INT64_MIN) wraps to itself.
  if (const auto& data = e.a->data; data && data->least == INT64_MIN) return {};
  const Bounds x = expr_interval(e.a, depth - 1);
  return {0, larger(x.max, times(x.min, -1))};
}

Bounds Prover::binary_bounds(const expr::Binary& e, int depth) {
  Bounds a = expr_interval(e.a, depth - 1), b = expr_interval(e.b, depth - 1);
  bool non_negative = a.min && *a.min >= 0;
  if (e.op == BinaryOp::floor_div || (e.op == BinaryOp::div && non_negative)) return quotient(a, b);
  if (e.op == BinaryOp::floor_mod || (e.op == BinaryOp::mod && non_negative))
    return remainder(a, b);
  if (e.op == BinaryOp::min) return {smaller(a.min, b.min), either_smaller(a.max, b.max)};
  if (e.op == BinaryOp::max) return {either_larger(a.min, b.min), larger(a.max, b.max)};
  return {};
}

Bounds Prover::expr_interval(const Expr& e, int depth) {
  const Poly p = parse(e);
  return may_wrap(p) ? type_bounds(e.type()) : interval(p, depth);
}

Bounds Prover::interval(const Poly& p, int depth) {
  Bounds total{p.constant, p.constant};
  for (const Term& t : p.terms) {
    Bounds b = atom_bounds(t.factors[0], depth);
    for (size_t i = 1; i < t.factors.size(); ++i) b = product(b, atom_bounds(t.factors[i], depth));
    b = scaled(b, t.coefficient);
    total = {sum(total.min, b.min), sum(total.max, b.max)};
  }
  return total;
}

// True: eliminating the atom cannot improve the sum of intervals. The atom is a variable without
// symbolic ends, and p has only constant multiples of it.
bool Prover::in_its_interval(const Poly& p, const Expr& a) const {
  const std::string* name = var_name(a);
  if (!name) return false;
  const auto range = ranges_.find(*name);
  if (range == ranges_.end()) return true;
  for (const Expr& end : {range->second.min, range->second.max})
    if (end.defined() && !as_const(end)) return false;
  return std::ranges::all_of(p.terms, [&](const Term& t) {
    return t.factors.size() == 1 ||
           std::ranges::none_of(t.factors, [&](const Expr& f) { return compare(f, a) == 0; });
  });
}

// A lower bound of p with the atom replaced by an end of its range; nullopt: there is no such end.
Limit Prover::lower_without(const Poly& p, const Expr& a, int depth) {
  if (in_its_interval(p, a)) return std::nullopt;
  std::optional<Split> split = split_on(p, a);
  if (!split) return std::nullopt;
  const auto& [c, rest] = *split;
  Bounds sign = interval(c, kAtomDepth);
  bool positive = sign.min && *sign.min >= 0, negative = sign.max && *sign.max <= 0;
  if (!positive && !negative) return std::nullopt;
  auto with = [&](const Poly& value) {
    if (may_wrap(value) || !numbers_fit(rest, value, c.is_constant() ? c.constant : 1))
      return Limit();
    return lower(add(rest, multiply(c, value)), depth - 1);
  };
  if (const std::string* name = var_name(a)) {
    auto range = ranges_.find(*name);
    if (range == ranges_.end()) return std::nullopt;
    const Expr& end = positive ? range->second.min : range->second.max;
    if (!end.defined() || (as_const(end) && c.is_constant())) return std::nullopt;
    return with(parse(end));
  }
  if (const auto* choice = as<expr::Select>(a))
    return smaller(with(parse(choice->then)), with(parse(choice->otherwise)));
  const auto* made = as<expr::Binary>(a);
  if (!made) return std::nullopt;
  if (made->op == BinaryOp::min || made->op == BinaryOp::max) {
    Limit first = with(parse(made->a)), second = with(parse(made->b));
    // Uses c * max(a, b) >= c * a and >= c * b.
    bool both_hold = (made->op == BinaryOp::max) == positive;
    return both_hold ? either_larger(first, second) : smaller(first, second);
  }
  if (made->op == BinaryOp::floor_mod && negative &&
      interval(parse(made->b), kAtomDepth).min.value_or(0) >= 1)
    return with(add(parse(made->b), Poly(-1)));
  auto divisor = made->op == BinaryOp::floor_div ? as_const(made->b) : std::nullopt;
  if (!divisor || *divisor < 1 || !c.is_constant() || c.constant % *divisor) return std::nullopt;
  Poly x = parse(made->a);  // x - d + 1 <= d * floor_div(x, d) <= x
  const int64_t times = c.constant / *divisor;
  if (may_wrap(x) || !numbers_fit(x, Poly(1 - *divisor)) || !numbers_fit(rest, x, times))
    return std::nullopt;
  if (positive) x.constant -= *divisor - 1;
  return lower(add(rest, x, times), depth - 1);
}

namespace {

// p // k, with the multiples of k in p taken out
Poly over(const Poly& p, int64_t k) {
  if (k == 1) return p;
  Poly quotient(floor_div_int(p.constant, k)), rest(floor_mod_int(p.constant, k));
  for (const Term& t : p.terms) {
    const bool divides = t.coefficient % k == 0;
    (divides ? quotient : rest).terms.push_back({t.factors, t.coefficient / (divides ? k : 1)});
  }
  return rest.terms.empty() ? quotient : add(quotient, atom(floor_div(to_expr(rest), Expr(k))));
}

// The quotient that a term is a multiple of, by a positive constant; null: it is none
const expr::Binary* quotient_in(const Term& t) {
  const auto* made = t.factors.size() == 1 ? as_binary(t.factors[0], BinaryOp::floor_div) : nullptr;
  return made && as_const(made->b).value_or(0) >= 1 ? made : nullptr;
}

}  // namespace

// A lower bound of m * (a // d) - n * (b // e), the sum of two terms. From a - b >= l follows
//   a // d - b // d >= l // d,      where m = n; a // (k * d) is (a // k) // d
//   a // d - k * (b // (k * d)) >= l // d,
//   k * (a // (k * d)) - b // d >= l // d - (k - 1).
// nullopt: the terms have no such form, or the distance l is not known.
Limit Prover::lower_of_quotients(const Term& above, const Term& below, int depth) {
  const expr::Binary *upper = quotient_in(above), *under = quotient_in(below);
  if (!upper || !under || below.coefficient == INT64_MIN || --budget_ < 0) return std::nullopt;
  const int64_t m = above.coefficient, n = -below.coefficient, d = *as_const(upper->b),
                e = *as_const(under->b), least = std::min(d, e), k = std::max(d, e) / least;
  Poly a = parse(upper->a), b = parse(under->a);
  if (std::max(d, e) % least || may_wrap(a) || may_wrap(b)) return std::nullopt;
  const bool steeper = m % k == 0 && m / k == n && d > e,
             flatter = n % k == 0 && n / k == m && e > d;
  if (m == n) a = over(a, d / least), b = over(b, e / least);
  else if (!steeper && !flatter) return std::nullopt;
  if (!numbers_fit(a, b, -1)) return std::nullopt;
  const Limit apart = lower(add(a, b, -1), depth - 1);
  if (!apart) return std::nullopt;
  const int64_t quotient = floor_div_int(*apart, least);
  return times(sum(quotient, steeper ? 1 - k : 0), std::min(m, n));
}

// A lower bound of p by two of its terms and the rest
Limit Prover::lower_by_quotients(const Poly& p, int depth) {
  Limit best;
  for (size_t i = 0; i < p.terms.size(); ++i)
    for (size_t j = 0; j < p.terms.size(); ++j) {
      if (p.terms[i].coefficient < 0 || p.terms[j].coefficient > 0) continue;
      const Limit both = lower_of_quotients(p.terms[i], p.terms[j], depth);
      if (!both) continue;
      Poly rest(p.constant);
      for (size_t other = 0; other < p.terms.size(); ++other)
        if (other != i && other != j) rest.terms.push_back(p.terms[other]);
      best = either_larger(best, sum(both, lower(rest, depth - 1)));
    }
  return best;
}

Limit Prover::lower(const Poly& p, int depth) {
  Limit best = interval(p, kAtomDepth).min;
  if (depth == 0) return best;
  for (const Expr& a : atoms_of(p)) {
    if (--budget_ < 0) break;
    best = either_larger(best, lower_without(p, a, depth));
  }
  // Kernels of known sizes keep the extents that intervals give: recorded schedules split them.
  return best ? best : lower_by_quotients(p, depth);
}

Limit Prover::lower(const Poly& p) {
  budget_ = kBudget;
  return lower(p, kDepth);
}
Limit Prover::upper(const Poly& p) { return times(lower(scale(p, -1)), -1); }
Bounds Prover::bounds(const Poly& p) { return {lower(p), upper(p)}; }

std::optional<int64_t> Prover::block_of(const Poly& p, int64_t size) {
  if (p.is_constant()) return floor_div_int(p.constant, size);
  Bounds quick = interval(p, kAtomDepth);
  Bounds b = quick.min && quick.max &&
                     floor_div_int(*quick.min, size) == floor_div_int(*quick.max, size)
                 ? quick
                 : bounds(p);
  if (!b.min || !b.max || floor_div_int(*b.min, size) != floor_div_int(*b.max, size))
    return std::nullopt;
  return floor_div_int(*b.min, size);
}

}  // namespace tw::algebra
