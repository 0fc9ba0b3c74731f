// The public functions of ir/simplify.h.
#include "ir/simplify.h"
#include "ir/simplify/memo.h"

#include <algorithm>

#include "ir/simplify/simplifier.h"
#include "support/diag.h"

namespace tw {

using namespace algebra;

// One run reaches the normal form almost always; joined terms may open a rule deeper inside, which
// the next run applies.
Expr simplify(const Expr& e, const Ranges& ranges) {
  constexpr int kMaxRuns = 5;
  if (!e.defined() || e->kind == ExprKind::int_imm || e->kind == ExprKind::float_imm) return e;
  thread_local SimplifyMemo memo;
  SimplifyMemo::Question question(e, ranges);
  if (const Expr* known = memo.find(question)) return *known;
  Simplifier simplifier(ranges);
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
    if (t.factors.size() == 1 && t.factors[0]->kind == ExprKind::var &&
        t.factors[0]->name == name) {
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

// Bounds of expressions while some variables run, as polynomials of the others.
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
    if (e->kind == ExprKind::var) return over_.find(e->name) != over_.end();
    return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& arg) { return runs(arg); });
  }
  // A variable that the range of another running atom of p mentions must wait for that one.
  bool waits(const Expr& v, const std::vector<Expr>& atoms) const {
    for (const Expr& a : atoms) {
      if (a->kind != ExprKind::var ? uses_var(a, v->name) : false) return true;
      auto range = a->kind == ExprKind::var ? over_.find(a->name) : over_.end();
      if (range == over_.end() || a->name == v->name) continue;
      if (uses_var(range->second.min, v->name) || uses_var(range->second.max, v->name)) return true;
    }
    return false;
  }

  // Replaces the running atoms one by one by the end that makes p smallest (or largest).
  std::optional<Poly> end_of(Poly p, bool want_max, int depth) {
    if (depth <= 0) return std::nullopt;
    for (int step = 0; step < kMaxSteps; ++step) {
      std::vector<Expr> atoms = atoms_of(p);
      std::erase_if(atoms, [&](const Expr& a) { return !runs(a); });
      if (atoms.empty()) return simplifier_.tidy(std::move(p));
      std::optional<Poly> next;
      for (const Expr& a : atoms) {
        if (atoms.size() > 1 && a->kind == ExprKind::var && waits(a, atoms)) continue;
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
    if (a->kind == ExprKind::var) {
      const Range& range = over_.find(a->name)->second;
      if (!range.min.defined() || !range.max.defined()) return std::nullopt;
      return Ends{simplifier_.normal(range.min), simplifier_.normal(range.max)};
    }
    std::optional<Ends> ends;
    if (a->kind == ExprKind::binary && a.type() == DType::i64) ends = of_binary(a, depth);
    if (a->kind == ExprKind::select) ends = of_select(a, depth);
    return ends ? ends : constant_ends(a);
  }

  std::optional<Ends> of_binary(const Expr& a, int depth) {
    if (a->binary == BinaryOp::floor_div || a->binary == BinaryOp::floor_mod)
      return of_division(a, depth);
    if (a->binary != BinaryOp::min && a->binary != BinaryOp::max) return std::nullopt;
    bool is_min = a->binary == BinaryOp::min;
    auto x = of_value(a->args[0], depth), y = of_value(a->args[1], depth);
    if (!x || !y) return std::nullopt;
    return Ends{simplifier_.extreme(is_min, x->min, y->min),
                simplifier_.extreme(is_min, x->max, y->max)};
  }

  std::optional<Ends> of_division(const Expr& a, int depth) {
    Poly divisor = parse(a->args[1]);
    if (runs(a->args[1]) || !simplifier_.prover().at_least(divisor, 1)) return std::nullopt;
    auto x = of_value(a->args[0], depth);
    if (a->binary == BinaryOp::floor_div) {
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

  std::optional<Ends> of_select(const Expr& a, int depth) {
    auto x = of_value(a->args[1], depth), y = of_value(a->args[2], depth);
    if (!x || !y) return std::nullopt;
    if (!runs(a->args[0])) {
      auto choose = [&](const Poly& p, const Poly& q) {
        return parse(select(a->args[0], to_expr(p), to_expr(q)));
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
    if (part->kind == ExprKind::var) ranges[part->name] = symbol_range(part->name);
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
