// The public functions of ir/simplify.h.
#include "ir/simplify.h"
#include "ir/simplify/memo.h"

#include <algorithm>

#include "ir/simplify/simplifier.h"
#include "support/diag.h"

namespace tw {

using namespace algebra;

// One run almost always reaches the normal form. Joined terms may enable a rule deeper inside,
// which the next run applies.
Expr simplify(const Expr& e, const Ranges& ranges) {
  constexpr int kMaxRuns = 5;
  if (!e.defined() || is<expr::Int, expr::Float>(e)) return e;
  thread_local SimplifyMemo memo;
  SimplifyMemo::Question question(e, ranges);
  if (const Expr* known = memo.find(question)) return *known;
  Simplifier simplifier(ranges);
  simplifier.prover().assume_values_of(e);
  Expr simpler = simplifier.run(e);
  for (int run = 1; run < kMaxRuns; ++run) {
    Expr again = simplifier.run(simpler);
    if (equal(again, simpler)) break;
    simpler = again;
  }
  memo.keep(std::move(question), simpler);
  return simpler;
}

Bounds constant_bounds(const Expr& e, const Ranges& ranges) {
  Simplifier simplifier(ranges);
  if (e.type() == DType::i64) {
    const Poly value = simplifier.normal(e);
    return may_wrap(value) ? Bounds{} : simplifier.prover().bounds(value);
  }
  Expr simpler = simplifier.run(e);
  if (auto value = as_const(simpler)) return {value, value};
  return is_float(e.type()) ? Bounds{} : simplifier.prover().atom_bounds(simpler, 4);
}

bool may_wrap(const Expr& value) {
  return value.type() == DType::i64 && algebra::may_wrap(parse(value));
}

bool can_prove(const Expr& condition, const Ranges& ranges) {
  return is_const(simplify(condition, ranges), 1);
}

std::optional<LinearTerm> linear_in(const Expr& e, std::string_view name) {
  if (e.type() != DType::i64) return std::nullopt;
  Ranges none;
  Poly p = Simplifier(none).normal(e), rest(p.constant);
  int64_t coefficient = 0;
  for (const Term& t : p.terms) {
    if (t.factors.size() == 1 && is_var(t.factors[0], name)) {
      coefficient = t.coefficient;
      continue;
    }
    for (const Expr& f : t.factors)
      if (uses_var(f, name)) return std::nullopt;
    rest.terms.push_back(t);
  }
  return LinearTerm{coefficient, to_expr(rest)};
}

namespace {

// Bounds of expressions while some variables run, as polynomials of the others
class IntervalFinder {
 public:
  IntervalFinder(const Ranges& over, const Ranges& all) : over_(over), simplifier_(all) {}

  struct Ends {
    Poly min, max;
  };
  std::optional<Ends> of(const Poly& p, int depth) {
    auto min = end_of(p, false, depth), max = end_of(p, true, depth);
    if (!min || !max) return std::nullopt;
    return Ends{std::move(*min), std::move(*max)};
  }

 private:
  static constexpr int kMaxSteps = 32;

  bool runs(const Expr& e) const {
    if (const std::string* name = var_name(e)) return over_.find(*name) != over_.end();
    return any_operand(*e, [&](const Expr& operand) { return runs(operand); });
  }
  // True: the range of another running atom of p mentions the variable, so that atom must be
  // replaced first.
  bool waits(const std::string& v, const std::vector<Expr>& atoms) const {
    for (const Expr& a : atoms) {
      const std::string* name = var_name(a);
      if (!name && uses_var(a, v)) return true;
      auto range = name ? over_.find(*name) : over_.end();
      if (range == over_.end() || *name == v) continue;
      if (uses_var(range->second.min, v) || uses_var(range->second.max, v)) return true;
    }
    return false;
  }

  // Replaces the running atoms one by one by the end that makes p smallest or largest.
  std::optional<Poly> end_of(Poly p, bool want_max, int depth) {
    if (depth <= 0) return std::nullopt;
    for (int step = 0; step < kMaxSteps; ++step) {
      std::vector<Expr> atoms = atoms_of(p);
      std::erase_if(atoms, [&](const Expr& a) { return !runs(a); });
      if (atoms.empty()) return simplifier_.tidy(std::move(p));
      std::optional<Poly> next;
      for (const Expr& a : atoms) {
        const std::string* name = var_name(a);
        if (atoms.size() > 1 && name && waits(*name, atoms)) continue;
        if ((next = without(p, a, want_max, depth))) break;
      }
      if (!next) return std::nullopt;
      p = std::move(*next);
    }
    return std::nullopt;
  }

  std::optional<Poly> without(const Poly& p, const Expr& a, bool want_max, int depth) {
    std::optional<Split> split = split_on(p, a);
    if (!split) return std::nullopt;
    bool grows = simplifier_.prover().at_least(split->coefficient, 0);
    if (!grows && !simplifier_.prover().at_most(split->coefficient, 0)) return std::nullopt;
    std::optional<Ends> ends = of_atom(a, depth - 1);
    if (!ends) return std::nullopt;
    return simplifier_.tidy(
        add(split->rest, multiply(split->coefficient, grows == want_max ? ends->max : ends->min)));
  }

  std::optional<Ends> of_value(const Expr& e, int depth) {
    const Poly p = parse(e);
    return may_wrap(p) ? std::nullopt : of(p, depth);
  }

  std::optional<Ends> constant_ends(const Expr& a) {
    Bounds b = simplifier_.prover().bounds(atom(a));
    if (!b.min || !b.max) return std::nullopt;
    return Ends{Poly(*b.min), Poly(*b.max)};
  }

  std::optional<Ends> of_atom(const Expr& a, int depth) {
    if (depth <= 0) return constant_ends(a);
    if (const std::string* name = var_name(a)) {
      const Range& range = over_.find(*name)->second;
      if (!range.min.defined() || !range.max.defined()) return std::nullopt;
      return Ends{simplifier_.normal(range.min), simplifier_.normal(range.max)};
    }
    std::optional<Ends> ends;
    if (const auto* made = as<expr::Binary>(a); made && a.type() == DType::i64)
      ends = of_binary(*made, depth);
    if (const auto* choice = as<expr::Select>(a)) ends = of_select(*choice, depth);
    return ends ? ends : constant_ends(a);
  }

  std::optional<Ends> of_binary(const expr::Binary& e, int depth) {
    if (e.op == BinaryOp::floor_div || e.op == BinaryOp::floor_mod) return of_division(e, depth);
    if (e.op != BinaryOp::min && e.op != BinaryOp::max) return std::nullopt;
    bool is_min = e.op == BinaryOp::min;
    auto x = of_value(e.a, depth), y = of_value(e.b, depth);
    if (!x || !y) return std::nullopt;
    return Ends{simplifier_.extreme(is_min, x->min, y->min),
                simplifier_.extreme(is_min, x->max, y->max)};
  }

  std::optional<Ends> of_division(const expr::Binary& e, int depth) {
    Poly divisor = parse(e.b);
    if (runs(e.b) || !simplifier_.prover().at_least(divisor, 1)) return std::nullopt;
    auto x = of_value(e.a, depth);
    if (e.op == BinaryOp::floor_div) {
      if (!x) return std::nullopt;
      return Ends{simplifier_.divide(x->min, divisor), simplifier_.divide(x->max, divisor)};
    }
    if (x) {
      Poly first = simplifier_.divide(x->min, divisor), last = simplifier_.divide(x->max, divisor);
      if (same(first, last))
        return Ends{simplifier_.remainder(x->min, divisor), simplifier_.remainder(x->max, divisor)};
    }
    return Ends{Poly(), add(divisor, Poly(-1))};
  }

  std::optional<Ends> of_select(const expr::Select& e, int depth) {
    auto x = of_value(e.then, depth), y = of_value(e.otherwise, depth);
    if (!x || !y) return std::nullopt;
    if (!runs(e.condition)) {
      auto choose = [&](const Poly& p, const Poly& q) {
        return parse(select(e.condition, to_expr(p), to_expr(q)));
      };
      return Ends{choose(x->min, y->min), choose(x->max, y->max)};
    }
    return Ends{simplifier_.extreme(true, x->min, y->min),
                simplifier_.extreme(false, x->max, y->max)};
  }

  const Ranges& over_;
  Simplifier simplifier_;
};

}  // namespace

Ranges symbol_ranges(const Expr& e) {
  Ranges ranges;
  visit(e, [&](const Expr& part) {
    if (const std::string* name = var_name(part)) ranges[*name] = symbol_range(*name);
  });
  return ranges;
}

std::optional<Interval> interval_over(const Expr& e, const Ranges& over, const Ranges& all) {
  if (e.type() != DType::i64) return std::nullopt;
  Ranges merged = all;
  for (const auto& [name, range] : over) merged[name] = range;
  constexpr int kDepth = 12;
  auto ends = IntervalFinder(over, merged).of(Simplifier(merged).normal(e), kDepth);
  if (!ends) return std::nullopt;
  return Interval{simplify(to_expr(ends->min), merged), simplify(to_expr(ends->max), merged)};
}

}  // namespace tw
