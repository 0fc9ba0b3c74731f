#include "ir/simplify/poly.h"

#include <algorithm>
#include <bit>
#include <set>

#include "ir/data_range.h"
#include "ir/scalar_ops.h"

namespace tw::algebra {
namespace {

int three_way(auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; }

int compare_lists(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (int c = compare(a[i], b[i])) return c;
  return three_way(a.size(), b.size());
}

int compare_kind(const expr::Int& x, const expr::Int& y) { return three_way(x.value, y.value); }
int compare_kind(const expr::Float& x, const expr::Float& y) {
  return three_way(std::bit_cast<uint64_t>(x.value), std::bit_cast<uint64_t>(y.value));
}
int compare_kind(const expr::Var&, const expr::Var&) { return 0; }  // the caller compares names
int compare_kind(const expr::Load& x, const expr::Load& y) {
  if (int c = three_way(x.buffer.index, y.buffer.index)) return c;
  return compare_lists(x.indices, y.indices);
}
int compare_kind(const expr::Unary& x, const expr::Unary& y) {
  if (int c = three_way(x.op, y.op)) return c;
  return compare(x.a, y.a);
}
int compare_kind(const expr::Binary& x, const expr::Binary& y) {
  if (int c = three_way(x.op, y.op)) return c;
  if (int c = compare(x.a, y.a)) return c;
  return compare(x.b, y.b);
}
int compare_kind(const expr::Select& x, const expr::Select& y) {
  if (int c = compare(x.condition, y.condition)) return c;
  if (int c = compare(x.then, y.then)) return c;
  return compare(x.otherwise, y.otherwise);
}
int compare_kind(const expr::Cast& x, const expr::Cast& y) {
  if (int c = three_way(x.saturate, y.saturate)) return c;
  return compare(x.a, y.a);
}

int64_t wrapping_mul(int64_t a, int64_t b) { return int_binary(BinaryOp::mul, DType::i64, a, b); }
int64_t wrapping_add(int64_t a, int64_t b) { return int_binary(BinaryOp::add, DType::i64, a, b); }

Poly normalized(std::vector<Term> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_lists(a.factors, b.factors) < 0; });
  Poly out(constant);
  for (Term& t : terms) {
    if (!out.terms.empty() && compare_lists(out.terms.back().factors, t.factors) == 0) {
      Term& last = out.terms.back();
      last.coefficient = wrapping_add(last.coefficient, t.coefficient);
      if (last.coefficient == 0) out.terms.pop_back();
    } else if (t.coefficient != 0) {
      out.terms.push_back(std::move(t));
    }
  }
  return out;
}

}  // namespace

int compare(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return 0;
  const auto rank = [](const Expr& e) {
    return is<expr::Var>(e) ? -1 : is<expr::Int>(e) ? 100 : static_cast<int>(e->is.index());
  };
  if (int c = three_way(rank(a), rank(b))) return c;
  if (const std::string* name = var_name(a))
    if (int c = name->compare(*var_name(b))) return c < 0 ? -1 : 1;
  if (int c = three_way(a->type, b->type)) return c;
  return match(a,
               [&](const auto& x) { return compare_kind(x, *as<std::decay_t<decltype(x)>>(b)); });
}

int64_t Poly::coefficient_of(const Expr& atom) const {
  for (const Term& t : terms)
    if (t.factors.size() == 1 && compare(t.factors[0], atom) == 0) return t.coefficient;
  return 0;
}

const Expr* Poly::single_atom() const {
  bool single = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1;
  return single ? &terms[0].factors[0] : nullptr;
}

Poly atom(Expr e) {
  Poly p;
  p.terms.push_back({{std::move(e)}, 1});
  return p;
}

Poly add(const Poly& a, const Poly& b, int64_t scale_of_b) {
  std::vector<Term> terms = a.terms;
  for (Term t : b.terms) {
    t.coefficient = wrapping_mul(t.coefficient, scale_of_b);
    terms.push_back(std::move(t));
  }
  return normalized(std::move(terms),
                    wrapping_add(a.constant, wrapping_mul(b.constant, scale_of_b)));
}

Poly sum(const std::vector<Poly>& parts) {
  std::vector<Term> terms;
  int64_t constant = 0;
  for (const Poly& p : parts) {
    terms.insert(terms.end(), p.terms.begin(), p.terms.end());
    constant = wrapping_add(constant, p.constant);
  }
  return normalized(std::move(terms), constant);
}

namespace {

bool has_data(const Term& t) {
  return is_beyond_sizes(t.coefficient) ||
         std::ranges::any_of(t.factors, [](const Expr& e) { return e->data.has_value(); });
}
bool has_data(const Poly& p) {
  return is_beyond_sizes(p.constant) ||
         std::ranges::any_of(p.terms, [](const Term& t) { return has_data(t); });
}

}  // namespace

bool numbers_fit(const Poly& a, const Poly& b, int64_t scale_of_b) {
  const auto fits = [&](int64_t x, int64_t y) {
    int64_t scaled = 0;
    return !__builtin_mul_overflow(y, scale_of_b, &scaled) &&
           !__builtin_add_overflow(x, scaled, &scaled);
  };
  size_t at = 0;  // both term lists are sorted
  for (const Term& t : b.terms) {
    const auto order = [&] { return compare_lists(a.terms[at].factors, t.factors); };
    while (at < a.terms.size() && order() < 0) ++at;
    const bool meets = at < a.terms.size() && order() == 0;
    if (!fits(meets ? a.terms[at].coefficient : 0, t.coefficient)) return false;
  }
  return fits(a.constant, b.constant);
}

bool sum_may_wrap(const Poly& a, const Poly& b, int64_t scale_of_b) {
  return (has_data(a) || has_data(b)) &&
         (!numbers_fit(a, b, scale_of_b) || may_wrap(add(a, b, scale_of_b)));
}

bool may_wrap(const Poly& p) {
  if (!has_data(p) || (p.constant == 0 && p.single_atom())) return false;
  std::optional<DataRange> total = DataRange{p.constant, p.constant};
  for (const Term& t : p.terms) {
    std::optional<DataRange> own = DataRange{t.coefficient, t.coefficient};
    if (!has_data(t)) own = kSizes;
    else
      for (const Expr& factor : t.factors)
        if (own && (factor->data || is_beyond_sizes(t.coefficient)))
          own = product_range(*own, factor->data.value_or(kSizes));
    total = total && own ? sum_range(*total, *own) : std::nullopt;
  }
  return !total;
}

Poly scale(const Poly& a, int64_t factor) { return add(Poly(), a, factor); }

Poly multiply(const Poly& a, const Poly& b) {
  std::vector<Term> terms;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      Term t = x;
      t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(t.factors.begin(), t.factors.end(),
                [](const Expr& p, const Expr& q) { return compare(p, q) < 0; });
      t.coefficient = wrapping_mul(x.coefficient, y.coefficient);
      terms.push_back(std::move(t));
    }
    terms.push_back({x.factors, wrapping_mul(x.coefficient, b.constant)});
  }
  for (const Term& y : b.terms)
    terms.push_back({y.factors, wrapping_mul(y.coefficient, a.constant)});
  return normalized(std::move(terms), wrapping_mul(a.constant, b.constant));
}

bool same(const Poly& a, const Poly& b) {
  if (a.constant != b.constant || a.terms.size() != b.terms.size()) return false;
  for (size_t i = 0; i < a.terms.size(); ++i)
    if (a.terms[i].coefficient != b.terms[i].coefficient ||
        compare_lists(a.terms[i].factors, b.terms[i].factors) != 0)
      return false;
  return true;
}

std::optional<Split> split_on(const Poly& p, const Expr& atom) {
  Split out;
  out.rest.constant = p.constant;
  std::vector<Term> coefficient;
  for (const Term& t : p.terms) {
    Term rest = t;
    std::erase_if(rest.factors, [&](const Expr& f) { return compare(f, atom) == 0; });
    size_t power = t.factors.size() - rest.factors.size();
    if (power > 1) return std::nullopt;
    if (power == 0) out.rest.terms.push_back(t);
    else if (rest.factors.empty()) out.coefficient.constant = t.coefficient;
    else coefficient.push_back(std::move(rest));
  }
  out.coefficient = normalized(std::move(coefficient), out.coefficient.constant);
  return out;
}

std::vector<Expr> atoms_of(const Poly& p) {
  constexpr auto before = [](const Expr& a, const Expr& b) { return compare(a, b) < 0; };
  std::set<Expr, decltype(before)> seen;
  std::vector<Expr> atoms;
  for (const Term& t : p.terms)
    for (const Expr& f : t.factors)
      if (seen.insert(f).second) atoms.push_back(f);
  return atoms;
}

static const expr::Binary* as_sum(const Expr& e) {
  const auto* made = e.type() == DType::i64 ? as<expr::Binary>(e) : nullptr;
  return made && (made->op == BinaryOp::add || made->op == BinaryOp::sub) ? made : nullptr;
}

bool is_long_sum(const Expr& e) {
  constexpr int kLong = 16;
  const auto* sum = as_sum(e);
  for (int operands = 1; sum && operands < kLong; ++operands) sum = as_sum(sum->a);
  return sum != nullptr;
}

Poly sum_of(const Expr& e, const std::function<Poly(const Expr&)>& part) {
  std::vector<Poly> parts;
  const Expr* left = &e;
  while (const auto* sum = as_sum(*left)) {
    parts.push_back(scale(part(sum->b), sum->op == BinaryOp::add ? 1 : -1));
    left = &sum->a;
  }
  parts.push_back(part(*left));
  return sum(parts);
}

Poly parse(const Expr& e) {
  if (const auto value = as_const(e)) return Poly(*value);
  if (is_long_sum(e)) return sum_of(e, parse);
  if (e.type() != DType::i64) return atom(e);  // sums of narrower types wrap
  if (const auto* negated = as_unary(e, UnaryOp::neg)) return scale(parse(negated->a), -1);
  if (const auto* made = as<expr::Binary>(e)) {
    if (made->op == BinaryOp::add) return add(parse(made->a), parse(made->b));
    if (made->op == BinaryOp::sub) return add(parse(made->a), parse(made->b), -1);
    if (made->op == BinaryOp::mul) return multiply(parse(made->a), parse(made->b));
  }
  return atom(e);
}

namespace {
Expr product(const Term& t) {
  Expr e = t.factors[0];
  for (size_t i = 1; i < t.factors.size(); ++i) e = e * t.factors[i];
  return e;
}
}  // namespace

Expr to_expr(const Poly& p) {
  Expr sum;
  for (const Term& t : p.terms)
    if (t.coefficient > 0) {
      Expr e = product(t) * t.coefficient;
      sum = sum.defined() ? sum + e : e;
    }
  int64_t constant = p.constant;
  if (!sum.defined() && constant > 0) {
    sum = constant;
    constant = 0;
  }
  for (const Term& t : p.terms)
    if (t.coefficient < 0) {
      bool negatable = t.coefficient != INT64_MIN;
      if (sum.defined() && negatable) sum = sum - product(t) * -t.coefficient;
      else if (t.coefficient == -1) sum = -product(t);
      else sum = sum.defined() ? sum + product(t) * t.coefficient : product(t) * t.coefficient;
    }
  if (!sum.defined()) return constant;
  if (constant < 0 && constant != INT64_MIN) return sum - Expr(-constant);
  return sum + constant;
}

}  // namespace tw::algebra
