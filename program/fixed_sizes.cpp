#include "program/fixed_sizes.h"

#include <llvm/Support/FormatVariadic.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "ir/graph/index_checks.h"
#include "program/size_conditions.h"
#include "program/sizes.h"

namespace tw {
namespace {

using End = std::optional<int64_t>;

// A result is known if the operands are known and it fits in 64 bits.
End sum_of(End a, End b) {
  int64_t sum = 0;
  return a && b && !__builtin_add_overflow(*a, *b, &sum) ? End(sum) : End();
}
End difference_of(End a, End b) {
  int64_t difference = 0;
  return a && b && !__builtin_sub_overflow(*a, *b, &difference) ? End(difference) : End();
}
End product_of(End a, int64_t b) {
  int64_t product = 0;
  return a && !__builtin_mul_overflow(*a, b, &product) ? End(product) : End();
}
End quotient_down(End a, int64_t by) { return a ? End(*a / by - (*a % by < 0 ? 1 : 0)) : End(); }
End quotient_up(End a, int64_t by) { return a ? End(*a / by + (*a % by > 0 ? 1 : 0)) : End(); }

// Ranges of symbols, narrowed by conditions that hold.
class Narrowing {
 public:
  explicit Narrowing(Ranges ranges) : ranges_(std::move(ranges)) {}

  const Ranges& ranges() const { return ranges_; }

  // Narrows the ranges by a condition that holds. Returns true if a range has become narrower.
  bool hold(const Expr& condition) {
    changed_ = false;
    take(condition);
    return changed_;
  }

 private:
  Bounds bounds(const Expr& e) const { return constant_bounds(e, ranges_); }

  void take(const Expr& condition) {
    const auto* made = as<expr::Binary>(condition);
    if (!made) return;
    const Expr &a = made->a, &b = made->b;
    if (made->op == BinaryOp::logical_and) {
      take(a), take(b);
    } else if (made->op == BinaryOp::logical_or) {
      if (is_const(simplify(a, ranges_), 0)) take(b);
      else if (is_const(simplify(b, ranges_), 0)) take(a);
    } else if (made->op == BinaryOp::eq) {
      take_equal(a, b);
    } else if (made->op == BinaryOp::le || made->op == BinaryOp::lt) {
      const int64_t apart = made->op == BinaryOp::lt ? 1 : 0;
      narrow(a, {{}, difference_of(bounds(b).max, apart)});
      narrow(b, {sum_of(bounds(a).min, apart), {}});
    }
  }

  void take_equal(Expr a, Expr b) {
    // If a product is not 0, none of its factors is 0.
    if (bounds(a).min.value_or(0) > 0)
      if (const auto counts = counts_without_common_factors({a}, {b})) std::tie(a, b) = *counts;
    narrow(a, bounds(b)), narrow(b, bounds(a));
  }

  // Narrows the ranges of symbols such that e lies in `to`.
  void narrow(const Expr& e, const Bounds& to) {
    if (!to.min && !to.max) return;
    if (const std::string* name = var_name(e)) return narrow_symbol(*name, to);
    const auto* made = as<expr::Binary>(e);
    if (!made) return;
    const Expr &a = made->a, &b = made->b;
    const Bounds of_a = bounds(a), of_b = bounds(b);
    if (made->op == BinaryOp::add) {
      narrow(a, {difference_of(to.min, of_b.max), difference_of(to.max, of_b.min)});
      narrow(b, {difference_of(to.min, of_a.max), difference_of(to.max, of_a.min)});
    } else if (made->op == BinaryOp::sub) {
      narrow(a, {sum_of(to.min, of_b.min), sum_of(to.max, of_b.max)});
      narrow(b, {difference_of(of_a.min, to.max), difference_of(of_a.max, to.min)});
    } else if (made->op == BinaryOp::mul) {
      narrow_factor(a, b, to), narrow_factor(b, a, to);
    } else if (made->op == BinaryOp::floor_div) {
      if (const auto by = as_const(b); by && *by > 0)
        narrow(a, {product_of(to.min, *by), sum_of(product_of(to.max, *by), *by - 1)});
    } else if (made->op == BinaryOp::min) {
      narrow(a, {to.min, {}}), narrow(b, {to.min, {}});
    } else if (made->op == BinaryOp::max) {
      narrow(a, {{}, to.max}), narrow(b, {{}, to.max});
    }
  }

  // Narrows the ranges of symbols such that factor * other lies in `to`.
  void narrow_factor(const Expr& factor, const Expr& other, const Bounds& to) {
    if (const auto times = as_const(other)) {
      if (*times > 0) narrow(factor, {quotient_up(to.min, *times), quotient_down(to.max, *times)});
      else if (*times < 0 && *times > INT64_MIN)
        narrow_factor(factor, Expr(-*times), {difference_of(0, to.max), difference_of(0, to.min)});
      return;
    }
    const Bounds own = bounds(factor), by = bounds(other);
    if (own.min.value_or(-1) < 0 || by.min.value_or(-1) < 0) return;
    const int64_t some = to.min.value_or(0) > 0 ? 1 : 0;  // 1: neither factor can be 0
    const int64_t least = std::max(*by.min, some);
    narrow(factor,
           {std::max<int64_t>(
                some, by.max.value_or(0) > 0 ? quotient_up(to.min, *by.max).value_or(0) : 0),
            least > 0 ? quotient_down(to.max, least) : End()});
  }

  void narrow_symbol(const std::string& symbol, const Bounds& to) {
    const auto found = ranges_.find(symbol);
    if (found == ranges_.end()) return;
    Range& range = found->second;
    const Bounds now = bounds(var(symbol));
    if (to.min && (!now.min || *to.min > *now.min)) range.min = Expr(*to.min), changed_ = true;
    if (to.max && (!now.max || *to.max < *now.max)) range.max = Expr(*to.max), changed_ = true;
  }

  Ranges ranges_;
  bool changed_ = false;
};

class FixedSizes {
 public:
  FixedSizes(const Graph& graph, const SymbolNames& names) : main_(graph), names_(names) {}

  std::vector<std::string> run() {
    if (!main_.symbols.empty()) add(main_, ranges_of(main_), "");
    return std::move(texts_);
  }

 private:
  struct Condition {
    Expr holds;
    NodeId of;
  };

  static std::vector<Condition> all_conditions(const Graph& graph) {
    std::vector<Condition> all;
    std::set<std::string> seen;
    for (const NodeId id : graph.order()) {
      std::vector<Expr> list = conditions_of(graph, graph.node(id));
      for (IndexCondition& index : index_conditions(graph, graph.node(id)))
        list.push_back(std::move(index.holds));
      for (const Expr& holds : list)
        if (seen.insert(to_string(holds)).second) all.push_back({holds, id});
    }
    return all;
  }

  // The size, if the symbol's range contains exactly one multiple of its step.
  End only_size(const std::string& symbol, const Ranges& ranges) const {
    const int64_t step = limits_of(main_.limits, symbol).step;
    const Bounds range = constant_bounds(var(symbol), ranges);
    const End least = quotient_up(range.min, step), most = quotient_down(range.max, step);
    return least && least == most ? product_of(least, step) : End();
  }

  // `known` are the ranges that hold around the graph.
  void add(const Graph& graph, Ranges known, const std::string& where) {
    std::set<std::string> fixed;
    for (const std::string& symbol : main_.symbols)
      if (only_size(symbol, known)) fixed.insert(symbol);
    constexpr int kRounds = 8;  // each round may narrow ranges that the next one reads
    Narrowing narrowing(std::move(known));
    const std::vector<Condition> all = all_conditions(graph);
    bool changed = true;
    for (int round = 0; round < kRounds && std::exchange(changed, false); ++round)
      for (const Condition& condition : all) {
        if (!narrowing.hold(condition.holds)) continue;
        changed = true;
        for (const std::string& symbol : main_.symbols) {
          const End size = only_size(symbol, narrowing.ranges());
          if (!size || !fixed.insert(symbol).second) continue;
          texts_.push_back(
              llvm::formatv("the free dimension '{0}' can be {1} alone{2}: {3} needs it",
                            symbol_name(names_, symbol), *size, where,
                            node_title(graph, graph.node(condition.of)))
                  .str());
        }
      }
    for (const NodeId id : graph.order())
      for (const Graph* region : regions_of(graph.node(id).attrs)) {
        Ranges inner = ranges_of(*region);
        for (const auto& [symbol, range] : narrowing.ranges()) inner[symbol] = range;
        add(*region, std::move(inner), where_it_runs(graph, graph.node(id)));
      }
  }

  const Graph& main_;
  const SymbolNames& names_;
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> fixed_sizes(const Graph& graph, const SymbolNames& names) {
  return FixedSizes(graph, names).run();
}

}  // namespace tw
