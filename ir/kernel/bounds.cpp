#include "ir/kernel/bounds.h"

#include <algorithm>
#include <set>

#include "ir/kernel/guards.h"
#include "ir/scalar_ops.h"
#include "ir/simplify.h"
#include "ir/size_ends.h"

namespace tw {
namespace {

constexpr size_t kMostErrors = 4;
constexpr int64_t kMostPoints = 1 << 16;  // limit of points that are checked one by one
constexpr int kMostCases = 3;             // limit of nested cases of a min or max
constexpr size_t kMostConditions = 12;    // limit of conditions that are combined in pairs

bool loads_something(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& n) { found |= is<expr::Load>(n); });
  return found;
}

void add_variables(const Expr& e, std::set<std::string>& names) {
  visit(e, [&](const Expr& n) {
    if (const auto* variable = as<expr::Var>(n)) names.insert(variable->name);
  });
}

// The negation of `e`; undefined: no simple one exists.
Expr opposite(const Expr& e) {
  if (const auto* negation = as_unary(e, UnaryOp::logical_not)) return negation->a;
  const auto* test = as<expr::Binary>(e);
  if (!test) return {};
  if (test->op == BinaryOp::lt) return le(test->b, test->a);
  if (test->op == BinaryOp::le) return lt(test->b, test->a);
  if (test->op != BinaryOp::logical_or) return {};
  return logical_and(opposite(test->a), opposite(test->b));
}

class BoundsChecker {
 public:
  BoundsChecker(const Kernel& kernel, Tables tables) : kernel_(kernel), tables_(tables) {
    for (const std::string& symbol : kernel.symbols) ranges_[symbol] = symbol_range(symbol);
  }

  Error run() {
    for (const Buffer& b : kernel_.buffers) {
      Expr bytes = static_cast<int64_t>(dtype_bytes(b.dtype));
      for (const Expr& extent : b.shape) bytes = bytes * extent;
      if (!size_ends(bytes, ranges_) || !countable(b.shape))
        report("buffer '" + b.name + "' has more bytes than can be counted");
      if (!std::ranges::all_of(b.shape, [&](const Expr& e) { return can_be_divided(e); }))
        report("buffer '" + b.name + "' has an extent with a divisor that may be 0");
    }
    if (problems_.empty()) walk(kernel_.body);
    return make_error(std::move(problems_));
  }

 private:
  // True: the product of the constant extents stays countable, so folding cannot wrap.
  static bool countable(const std::vector<Expr>& shape) {
    __int128 count = 1;
    for (const Expr& extent : shape) {
      count *= std::max<int64_t>(as_const(extent).value_or(1), 1);
      if (count > kMostCounted / 8) return false;
    }
    return true;
  }

  bool can_be_divided(const Expr& e) const {
    bool sound = true;
    visit(e, [&](const Expr& n) {
      const auto* quotient = as<expr::Binary>(n);
      if (quotient && divides(quotient->op))
        sound = sound && constant_bounds(quotient->b, ranges_).min.value_or(0) >= 1;
    });
    return sound;
  }

  void report(std::string problem) {
    if (problems_.size() < kMostErrors)
      problems_.push_back({DiagCode::illegal_schedule,
                           "kernel @" + kernel_.name + ": " + std::move(problem),
                           {},
                           {}});
  }

  std::string text(const Expr& e) const {
    return to_string(e, [this](BufferId id) { return kernel_.buffer(id).name; });
  }

  void walk(const Stmt& s) {
    if (problems_.size() >= kMostErrors) return;
    match(
        s,
        [&](const stmt::Loop& loop) {
          loops_.push_back(&loop);
          ranges_[loop.var] = {Expr(0), loop.extent - Expr(1)};
          walk(loop.body);
          ranges_.erase(loop.var);
          loops_.pop_back();
        },
        [&](const stmt::If& guard) {
          look(guard.condition);
          under(guard.condition, [&] { walk(guard.body); });
        },
        [&](const stmt::Store& store) { look_at_store(store); },
        [&](const stmt::Prefetch&) {},  // a prefetch is a hint, and its element need not exist
        [&](const auto&) {
          for (const Stmt& child : children(s)) walk(child);
        });
  }

  void look_at_store(const stmt::Store& s) {
    stage_ = s.label;
    if (s.init.defined()) {  // the init is stored whatever `where` says
      look(s.init);
      look_at_access(s.buffer, s.indices);
    }
    if (s.where.defined()) look(s.where);
    under(s.where, [&] {
      look(s.value);
      look_at_access(s.buffer, s.indices);
    });
  }

  template <class Body>
  void under(const Expr& condition, const Body& body) {
    const size_t before = known_.size();
    for (const Expr& e : conjuncts(condition)) known_.push_back(e);
    body();
    known_.resize(before);
  }

  void look(const Expr& e) {
    match(
        e, [&](const expr::Load& load) { look_at_access(load.buffer, load.indices); },
        [&](const expr::Select& select) {
          look(select.condition);
          under(select.condition, [&] { look(select.then); });
          under(opposite(select.condition), [&] { look(select.otherwise); });
        },
        [&](const expr::Binary& binary) {
          look(binary.a);
          if (binary.op == BinaryOp::logical_and) under(binary.a, [&] { look(binary.b); });
          else if (binary.op == BinaryOp::logical_or)
            under(opposite(binary.a), [&] { look(binary.b); });
          else look(binary.b);
        },
        [&](const expr::Unary& unary) { look(unary.a); },
        [&](const expr::Cast& cast) { look(cast.a); }, [](const expr::Int&) {},
        [](const expr::Float&) {}, [](const expr::Var&) {});
  }

  void look_at_access(BufferId id, const std::vector<Expr>& indices) {
    const Buffer& buffer = kernel_.buffer(id);
    for (size_t d = 0; d < indices.size(); ++d) {
      look(indices[d]);
      if (is_table_entry(indices[d]) || is_inside(indices[d], buffer.shape[d])) continue;
      std::string list;
      for (const Expr& index : indices) list += (list.empty() ? "" : ", ") + text(index);
      report((stage_.empty() ? "" : "stage '" + stage_ + "': ") + "index " + text(indices[d]) +
             " of " + buffer.name + "[" + list + "] is not shown to lie in [0, " +
             text(buffer.shape[d]) + ")");
    }
  }

  bool is_table_entry(const Expr& index) const {
    const auto* entry = as<expr::Load>(index);
    return tables_ == Tables::ours && entry &&
           kernel_.buffer(entry->buffer).role == BufferRole::constant;
  }

  bool is_inside(const Expr& index, const Expr& extent) {
    return is_shown(index, extent) || holds_at_all_points(index, extent);
  }

  bool is_shown(const Expr& index, const Expr& extent) {
    // The index is inside if both sums are at most 0.
    const Expr low = simplify(-index, ranges_), high = simplify(index + 1 - extent, ranges_);
    const auto shown = [&](const Expr& sum) {
      return at_most_zero(sum) || largest_is_at_most_zero(sum) || follows(sum);
    };
    return (shown(low) && shown(high)) || holds_in_both_cases(index, extent);
  }

  // Tries the two values that the first min or max in the index may have, each where it has it.
  bool holds_in_both_cases(const Expr& index, const Expr& extent) {
    if (cases_ == kMostCases) return false;
    Expr choice;
    visit(index, [&](const Expr& e) {
      if (!choice.defined() && (as_binary(e, BinaryOp::min) || as_binary(e, BinaryOp::max)))
        choice = e;
    });
    if (!choice.defined()) return false;
    const auto& both = *as<expr::Binary>(choice);
    const bool least = both.op == BinaryOp::min;
    const auto with = [&](const Expr& value) {
      return rewrite(index, [&](const Expr& e) { return equal(e, choice) ? value : Expr(); });
    };
    bool inside = true;
    ++cases_;
    under(least ? le(both.a, both.b) : le(both.b, both.a),
          [&] { inside = is_shown(with(both.a), extent); });
    under(least ? le(both.b, both.a) : le(both.a, both.b),
          [&] { inside = inside && is_shown(with(both.b), extent); });
    --cases_;
    return inside;
  }

  // Tries the largest value of `sum` over all iterations of the loops, in terms of the symbols.
  bool largest_is_at_most_zero(const Expr& sum) const {
    Ranges loops;
    for (const stmt::Loop* loop : loops_) loops.insert(*ranges_.find(loop->var));
    const std::optional<Interval> interval = interval_over(sum, loops, ranges_);
    return interval && at_most_zero(interval->max);
  }

  bool at_most_zero(const Expr& e) const { return can_prove(le(e, Expr(0)), ranges_); }

  // The number of times that the goal has a variable of the sum; 0: none is in both, or it differs.
  static int64_t multiple(const Expr& goal, const Expr& sum) {
    std::set<std::string> names;
    add_variables(sum, names);
    int64_t times = 0;
    for (const std::string& name : names) {
      const std::optional<LinearTerm> all = linear_in(goal, name), once = linear_in(sum, name);
      if (!all || !once || all->coefficient == 0 || once->coefficient == 0) continue;
      const int64_t own = all->coefficient / once->coefficient;
      if (own * once->coefficient != all->coefficient || own < 1 || (times && own != times))
        return 0;
      times = own;
    }
    return times;
  }

  // Tries to derive the goal from one or two of the known conditions, written as sums that are at
  // most 0.
  bool follows(const Expr& goal) const {
    std::vector<Expr> sums;
    for (const Expr& c : known_) {
      const auto* test = as<expr::Binary>(c);
      if (!test || test->a.type() != DType::i64) continue;
      const Expr &a = test->a, &b = test->b;
      if (may_wrap(a) || may_wrap(b)) continue;
      if (test->op == BinaryOp::lt) sums.push_back(a + 1 - b);
      if (test->op == BinaryOp::le || test->op == BinaryOp::eq) sums.push_back(a - b);
      if (test->op == BinaryOp::eq) sums.push_back(b - a);
    }
    for (Expr& sum : sums) {
      if (at_most_zero(goal - sum)) return true;
      const int64_t times = multiple(goal, sum);
      if (times < 2) continue;
      sum = sum * Expr(times);
      if (at_most_zero(goal - sum)) return true;
    }
    if (sums.size() > kMostConditions) return false;
    for (size_t i = 0; i < sums.size(); ++i)
      for (size_t j = 0; j <= i; ++j)
        if (at_most_zero(goal - sums[i] - sums[j])) return true;
    return false;
  }

  // Checks every point of the constant loops. Conditions that the loops' variables decide exclude
  // points.
  bool holds_at_all_points(const Expr& index, const Expr& extent) const {
    if (loads_something(index) || !can_be_divided(index)) return false;
    std::set<std::string> names;
    add_variables(index, names);
    add_variables(extent, names);
    std::vector<const stmt::Loop*> loops = loops_of(names);
    int64_t points = points_of(loops);
    std::vector<Expr> conditions;
    for (const Expr& c : known_) {
      if (loads_something(c) || !can_be_divided(c)) continue;
      std::set<std::string> more = names;
      add_variables(c, more);
      const std::vector<const stmt::Loop*> wider = loops_of(more);
      const int64_t count = points_of(wider);
      if (count == 0 || count > kMostPoints) continue;
      names = std::move(more), loops = wider, points = count;
      conditions.push_back(c);
    }
    if (points == 0 || points > kMostPoints || loops.size() != names.size()) return false;
    if (!std::ranges::all_of(loops, [&](const auto* l) { return can_be_divided(l->extent); }))
      return false;
    std::map<std::string, int64_t, std::less<>> at;
    return all_points(loops, 0, at, conditions, index, extent);
  }

  // The loops of these variables and of the variables in their extents, from the outside in
  std::vector<const stmt::Loop*> loops_of(std::set<std::string>& names) const {
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
      if (names.contains((*loop)->var)) add_variables((*loop)->extent, names);
    std::vector<const stmt::Loop*> found;
    for (const stmt::Loop* loop : loops_)
      if (names.contains(loop->var)) found.push_back(loop);
    return found;
  }

  // Upper bound of the number of points; 0: unknown
  int64_t points_of(const std::vector<const stmt::Loop*>& loops) const {
    int64_t points = 1;
    for (const stmt::Loop* loop : loops) {
      const std::optional<int64_t> last = constant_bounds(var(loop->var), ranges_).max;
      if (!last || *last >= kMostPoints) return 0;
      points *= std::max<int64_t>(*last + 1, 1);
      if (points > kMostPoints) return points;
    }
    return points;
  }

  template <class At>
  static bool all_points(const std::vector<const stmt::Loop*>& loops, size_t depth, At& at,
                         const std::vector<Expr>& conditions, const Expr& index,
                         const Expr& extent) {
    const auto value = [&](std::string_view name) { return at.find(name)->second; };
    if (depth == loops.size()) {
      for (const Expr& c : conditions)
        if (eval_int(c, value) == 0) return true;
      const int64_t i = eval_int(index, value);
      return i >= 0 && i < eval_int(extent, value);
    }
    const int64_t count = eval_int(loops[depth]->extent, value);
    int64_t& i = at[loops[depth]->var];
    for (i = 0; i < count; ++i)
      if (!all_points(loops, depth + 1, at, conditions, index, extent)) return false;
    return true;
  }

  const Kernel& kernel_;
  const Tables tables_;
  Ranges ranges_;
  std::vector<const stmt::Loop*> loops_;
  std::vector<Expr> known_;  // conditions that hold here
  int cases_ = 0;            // cases of a min or max that are told apart here
  std::string stage_;
  std::vector<Diag> problems_;
};

}  // namespace

Error check_bounds(const Kernel& kernel, Tables tables) {
  return BoundsChecker(kernel, tables).run();
}

}  // namespace tw
