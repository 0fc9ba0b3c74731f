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
constexpr int64_t kMostPoints = 1 << 16;  // that are looked at one by one
constexpr size_t kMostConditions = 12;    // that are put together by twos

bool loads_something(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& n) { found |= n->kind == ExprKind::load; });
  return found;
}

void add_variables(const Expr& e, std::set<std::string>& names) {
  visit(e, [&](const Expr& n) {
    if (n->kind == ExprKind::var) names.insert(n->name);
  });
}

// The condition that is true where `e` is not; undefined: no simple one is.
Expr opposite(const Expr& e) {
  if (e->kind == ExprKind::unary && e->unary == UnaryOp::logical_not) return e->args[0];
  if (e->kind != ExprKind::binary) return {};
  if (e->binary == BinaryOp::lt) return le(e->args[1], e->args[0]);
  if (e->binary == BinaryOp::le) return lt(e->args[1], e->args[0]);
  if (e->binary != BinaryOp::logical_or) return {};
  return logical_and(opposite(e->args[0]), opposite(e->args[1]));
}

class BoundsChecker {
 public:
  BoundsChecker(const Kernel& kernel, Tables tables) : kernel_(kernel), tables_(tables) {
    for (const std::string& symbol : kernel.symbols) ranges_[symbol] = {Expr(1), Expr()};
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
  // Constant extents whose product folds may wrap.
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
      if (n->kind == ExprKind::binary && divides(n->binary))
        sound = sound && constant_bounds(n->args[1], ranges_).min.value_or(0) >= 1;
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
    switch (s->kind) {
      case StmtKind::sequence:
      case StmtKind::roles:
      case StmtKind::block:
        for (const Stmt& child : s->body) walk(child);
        return;
      case StmtKind::loop:
        loops_.push_back(s.get());
        ranges_[s->var] = {Expr(0), s->extent - Expr(1)};
        walk(s->body[0]);
        ranges_.erase(s->var);
        return loops_.pop_back();
      case StmtKind::if_then:
        look(s->condition);
        return under(s->condition, [&] { walk(s->body[0]); });
      case StmtKind::store: return look_at_store(*s);
      case StmtKind::signal:
      case StmtKind::wait:
      case StmtKind::barrier:
      case StmtKind::prefetch: return;  // a hint, whose element need not exist
    }
    TW_UNREACHABLE("bad statement");
  }

  void look_at_store(const StmtNode& s) {
    stage_ = s.label;
    if (s.init.defined()) {  // it is stored whatever `where` says
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
    switch (e->kind) {
      case ExprKind::load: return look_at_access(e->buffer, e->args);
      case ExprKind::select:
        look(e->args[0]);
        under(e->args[0], [&] { look(e->args[1]); });
        return under(opposite(e->args[0]), [&] { look(e->args[2]); });
      case ExprKind::binary:
        look(e->args[0]);
        if (e->binary == BinaryOp::logical_and) return under(e->args[0], [&] { look(e->args[1]); });
        if (e->binary == BinaryOp::logical_or)
          return under(opposite(e->args[0]), [&] { look(e->args[1]); });
        return look(e->args[1]);
      case ExprKind::unary:
      case ExprKind::cast: return look(e->args[0]);
      case ExprKind::int_imm:
      case ExprKind::float_imm:
      case ExprKind::var: return;
    }
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
    return tables_ == Tables::ours && index->kind == ExprKind::load &&
           kernel_.buffer(index->buffer).role == BufferRole::constant;
  }

  bool is_inside(const Expr& index, const Expr& extent) {
    // Both are at most 0
    const Expr low = simplify(-index, ranges_), high = simplify(index + 1 - extent, ranges_);
    const auto shown = [&](const Expr& sum) {
      return at_most_zero(sum) || largest_is_at_most_zero(sum) || follows(sum);
    };
    return (shown(low) && shown(high)) || holds_at_all_points(index, extent);
  }

  // Over all iterations of the loops, in terms of the symbols.
  bool largest_is_at_most_zero(const Expr& sum) const {
    Ranges loops;
    for (const StmtNode* loop : loops_) loops.insert(*ranges_.find(loop->var));
    const std::optional<Interval> interval = interval_over(sum, loops, ranges_);
    return interval && at_most_zero(interval->max);
  }

  bool at_most_zero(const Expr& e) const { return can_prove(le(e, Expr(0)), ranges_); }

  // From one or two of the conditions, taken as sums that are at most 0.
  bool follows(const Expr& goal) const {
    std::vector<Expr> sums;
    for (const Expr& c : known_) {
      if (c->kind != ExprKind::binary || c->args[0].type() != DType::i64) continue;
      const Expr &a = c->args[0], &b = c->args[1];
      if (may_wrap(a) || may_wrap(b)) continue;
      if (c->binary == BinaryOp::lt) sums.push_back(a + 1 - b);
      if (c->binary == BinaryOp::le || c->binary == BinaryOp::eq) sums.push_back(a - b);
      if (c->binary == BinaryOp::eq) sums.push_back(b - a);
    }
    for (const Expr& sum : sums)
      if (at_most_zero(goal - sum)) return true;
    if (sums.size() > kMostConditions) return false;
    for (size_t i = 0; i < sums.size(); ++i)
      for (size_t j = 0; j <= i; ++j)
        if (at_most_zero(goal - sums[i] - sums[j])) return true;
    return false;
  }

  // For each point of constant loops, as far as their variables decide the conditions.
  bool holds_at_all_points(const Expr& index, const Expr& extent) const {
    if (loads_something(index) || !can_be_divided(index)) return false;
    std::set<std::string> names;
    add_variables(index, names);
    add_variables(extent, names);
    std::vector<const StmtNode*> loops = loops_of(names);
    int64_t points = points_of(loops);
    std::vector<Expr> conditions;
    for (const Expr& c : known_) {
      if (loads_something(c) || !can_be_divided(c)) continue;
      std::set<std::string> more = names;
      add_variables(c, more);
      const std::vector<const StmtNode*> wider = loops_of(more);
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

  // The loops of these variables and of their extents' variables, from the outside.
  std::vector<const StmtNode*> loops_of(std::set<std::string>& names) const {
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
      if (names.contains((*loop)->var)) add_variables((*loop)->extent, names);
    std::vector<const StmtNode*> found;
    for (const StmtNode* loop : loops_)
      if (names.contains(loop->var)) found.push_back(loop);
    return found;
  }

  // At most; 0: unknown.
  int64_t points_of(const std::vector<const StmtNode*>& loops) const {
    int64_t points = 1;
    for (const StmtNode* loop : loops) {
      const std::optional<int64_t> last = constant_bounds(var(loop->var), ranges_).max;
      if (!last || *last >= kMostPoints) return 0;
      points *= std::max<int64_t>(*last + 1, 1);
      if (points > kMostPoints) return points;
    }
    return points;
  }

  template <class At>
  static bool all_points(const std::vector<const StmtNode*>& loops, size_t depth, At& at,
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
  std::vector<const StmtNode*> loops_;
  std::vector<Expr> known_;  // conditions that hold
  std::string stage_;
  std::vector<Diag> problems_;
};

}  // namespace

Error check_bounds(const Kernel& kernel, Tables tables) {
  return BoundsChecker(kernel, tables).run();
}

}  // namespace tw
