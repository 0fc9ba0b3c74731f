#include "ir/kernel/loads.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/simplify.h"

namespace tw {
namespace {

constexpr int64_t kMostPoints = 1 << 14;  // limit of points of a straight piece that are visited
// Stands in for a symbol's value: large, and not a multiple of a tile.
constexpr int64_t kSymbol = 65521;

// True: e and its operands are known integers, and nothing divides by zero.
template <class Value>
bool has_value(const Expr& e, const Value& value) {
  if (is<expr::Load>(e) || is_float(e.type())) return false;
  if (any_operand(*e, [&](const Expr& operand) { return !has_value(operand, value); }))
    return false;
  constexpr BinaryOp kDivisions[] = {BinaryOp::div, BinaryOp::floor_div, BinaryOp::floor_mod,
                                     BinaryOp::mod};
  const auto* quotient = as<expr::Binary>(e);
  return !quotient || std::ranges::find(kDivisions, quotient->op) == std::end(kDivisions) ||
         as_const(quotient->b).value_or(0) != 0 || eval_int(quotient->b, value) != 0;
}

class Counter {
 public:
  explicit Counter(const Kernel& kernel) : kernel_(kernel) {
    for (const std::string& symbol : kernel.symbols) ranges_[symbol] = symbol_range(symbol);
  }

  Expr run() {
    walk(kernel_.body);
    return simplify(bytes_, ranges_);
  }

 private:
  using Point = std::vector<int64_t>;  // indices of a load
  // By buffer and by the number of outer loops that repeat the load
  using Elements = std::map<std::pair<int, size_t>, std::set<Point>>;

  void walk(const Stmt& s) {
    if (const auto* store = as<stmt::Store>(s)) return count(*store);
    const auto* loop = as<stmt::Loop>(s);
    const auto* guard = as<stmt::If>(s);
    if (loop) loops_.push_back(loop);
    if (guard) conditions_.push_back(guard->condition);
    for (const Stmt& child : children(s)) walk(child);
    if (loop) loops_.pop_back();
    if (guard) conditions_.pop_back();
  }

  static bool is_straight(const stmt::Loop& loop) {
    const std::optional<int64_t> extent = as_const(loop.extent);
    return extent &&
           (*extent == 1 || loop.kind == LoopKind::unroll || loop.kind == LoopKind::vector);
  }

  void count(const stmt::Store& s) {
    size_t straight = loops_.size();
    int64_t points = 1;
    while (straight > 0 && is_straight(*loops_[straight - 1]) &&
           points * *as_const(loops_[straight - 1]->extent) <= kMostPoints)
      points *= *as_const(loops_[--straight]->extent);
    // Values of symbols and of the straight piece's variables. The variables of other loops are 0.
    std::map<std::string, int64_t, std::less<>> at;
    for (const std::string& symbol : kernel_.symbols) at[symbol] = kSymbol;
    Elements elements;
    for (int64_t i = 0; i < points; ++i) {
      int64_t rest = i;
      for (size_t l = loops_.size(); l-- > straight;) {
        const int64_t extent = *as_const(loops_[l]->extent);
        at[loops_[l]->var] = rest % extent;
        rest /= extent;
      }
      const auto value = [&](std::string_view name) {
        const auto known = at.find(name);
        return known == at.end() ? 0 : known->second;
      };
      const auto holds = [&](const Expr& e) {
        return !has_value(e, value) || eval_int(e, value) != 0;
      };
      if (!std::all_of(conditions_.begin(), conditions_.end(), holds)) continue;
      for (const Expr& e : {s.value, s.where, s.init})
        if (e.defined()) note(e, straight, i, value, elements);
      for (const Expr& e : s.indices) note(e, straight, i, value, elements);
    }
    for (const auto& [key, set] : elements) {
      Expr amount(static_cast<int64_t>(set.size()) *
                  dtype_bytes(kernel_.buffers[static_cast<size_t>(key.first)].dtype));
      // From the inside out, because an extent may depend on the loops around it
      for (size_t l = key.second; l-- > 0;) {
        amount = amount * loops_[l]->extent;
        if (l > 0)
          amount = substitute(amount, loops_[l - 1]->var, floor_div(loops_[l - 1]->extent, 2));
      }
      for (const stmt::Loop* loop : loops_) amount = substitute(amount, loop->var, 0);
      bytes_ = simplify(bytes_ + amount, ranges_);
    }
  }

  template <class Value>
  void note(const Expr& e, size_t straight, int64_t point, const Value& value,
            Elements& elements) const {
    visit(e, [&](const Expr& n) {
      const auto* load = as<expr::Load>(n);
      if (!load || kernel_.buffer(load->buffer).scope == "register") return;
      size_t depth = straight;
      const auto moved = [&](const stmt::Loop* loop) {
        return std::ranges::any_of(load->indices,
                                   [&](const Expr& index) { return uses_var(index, loop->var); });
      };
      while (depth > 0 && !moved(loops_[depth - 1])) --depth;
      Point indices;
      for (const Expr& index : load->indices)
        indices.push_back(has_value(index, value) ? eval_int(index, value) : point);
      elements[{load->buffer.index, depth}].insert(std::move(indices));
    });
  }

  const Kernel& kernel_;
  Ranges ranges_;
  Expr bytes_ = 0;
  std::vector<const stmt::Loop*> loops_;
  std::vector<Expr> conditions_;
};

}  // namespace

Expr loaded_bytes(const Kernel& kernel) { return Counter(kernel).run(); }

}  // namespace tw
