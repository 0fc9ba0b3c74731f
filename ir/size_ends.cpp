#include "ir/size_ends.h"

#include <algorithm>

#include "ir/scalar_ops.h"

namespace tw {
namespace {

using End = std::optional<int64_t>;

class EndFinder {
 public:
  explicit EndFinder(const Ranges& ranges) : ranges_(ranges) {}

  Bounds of(const Expr& e) {
    if (!fits_) return {};
    return match(
        e, [&](const expr::Int& number) { return Bounds{end(number.value), end(number.value)}; },
        [&](const expr::Var& variable) { return of_variable(variable.name); },
        [&](const expr::Binary& made) { return of_binary(made); },
        [&](const expr::Select& choice) { return either(of(choice.then), of(choice.otherwise)); },
        [&](const expr::Unary& made) {
          const Bounds x = of(made.a);
          return made.op == UnaryOp::neg ? Bounds{times(x.max, -1), times(x.min, -1)} : Bounds();
        },
        [&](const expr::Cast& converted) { return of(converted.a); },
        [](const expr::Load&) { return Bounds(); }, [](const expr::Float&) { return Bounds(); });
  }
  bool fits() const { return fits_; }

 private:
  End end(__int128 value) {
    if (value <= kMostCounted && value >= -kMostCounted) return static_cast<int64_t>(value);
    fits_ = false;
    return std::nullopt;
  }
  End sum(End a, End b) { return a && b ? end(static_cast<__int128>(*a) + *b) : End(); }
  End times(End a, End b) { return a && b ? end(static_cast<__int128>(*a) * *b) : End(); }

  static Bounds either(const Bounds& a, const Bounds& b) {
    return {a.min && b.min ? std::min(a.min, b.min) : End(),
            a.max && b.max ? std::max(a.max, b.max) : End()};
  }

  Bounds of_variable(const std::string& name) {
    const auto known = known_.find(name);
    if (known != known_.end()) return known->second;
    const auto range = ranges_.find(name);
    Bounds out{1, 1};
    if (range != ranges_.end() && range->second.min.defined()) out.min = of(range->second.min).min;
    out.max = out.min;
    if (range != ranges_.end() && range->second.max.defined()) {
      out.max = of(range->second.max).max;
      if (out.max && out.min) out.max = std::max(out.max, out.min);
    }
    return known_[name] = out;
  }

  Bounds of_binary(const expr::Binary& e) {
    const Bounds a = of(e.a), b = of(e.b);
    switch (e.op) {
      case BinaryOp::add: return {sum(a.min, b.min), sum(a.max, b.max)};
      case BinaryOp::sub: return {sum(a.min, times(b.max, -1)), sum(a.max, times(b.min, -1))};
      case BinaryOp::mul: {
        const Bounds x{times(a.min, b.min), times(a.min, b.max)},
            y{times(a.max, b.min), times(a.max, b.max)};
        if (!x.min || !x.max || !y.min || !y.max) return {};
        return {std::min({*x.min, *x.max, *y.min, *y.max}),
                std::max({*x.min, *x.max, *y.min, *y.max})};
      }
      case BinaryOp::div:
      case BinaryOp::floor_div: return quotient(a, b);
      case BinaryOp::mod:
      case BinaryOp::floor_mod:
        if (!a.min || *a.min < 0 || !b.max || *b.max < 1) return {};
        return {0, a.max ? std::min(*a.max, *b.max - 1) : *b.max - 1};
      case BinaryOp::min: return {smaller(a.min, b.min), smaller(a.max, b.max)};
      case BinaryOp::max: return {larger(a.min, b.min), larger(a.max, b.max)};
      case BinaryOp::lt:
      case BinaryOp::le:
      case BinaryOp::eq:
      case BinaryOp::ne:
      case BinaryOp::logical_and:
      case BinaryOp::logical_or:
      case BinaryOp::logical_xor: return {0, 1};
      case BinaryOp::pow:
      case BinaryOp::bit_and:
      case BinaryOp::bit_or:
      case BinaryOp::bit_xor:
      case BinaryOp::shl:
      case BinaryOp::shr: break;
    }
    return {};
  }

  static End smaller(End a, End b) { return a && b ? std::min(a, b) : End(); }
  static End larger(End a, End b) { return a && b ? std::max(a, b) : End(); }

  static Bounds quotient(const Bounds& a, const Bounds& b) {
    if (!b.min || *b.min < 1 || !b.max || !a.min || !a.max) return {};
    return {floor_div_int(*a.min, *a.min >= 0 ? *b.max : *b.min),
            floor_div_int(*a.max, *a.max >= 0 ? *b.min : *b.max)};
  }

  const Ranges& ranges_;
  std::map<std::string, Bounds, std::less<>> known_;  // by variable
  bool fits_ = true;
};

}  // namespace

std::optional<Bounds> size_ends(const Expr& size, const Ranges& ranges) {
  EndFinder finder(ranges);
  const Bounds ends = finder.of(size);
  return finder.fits() ? std::optional(ends) : std::nullopt;
}

static bool counted_down(const Expr& e, int64_t& left) {
  if (--left < 0) return false;
  return !any_operand(*e, [&](const Expr& operand) { return !counted_down(operand, left); });
}

bool has_many_parts(const Expr& size, int64_t most) {
  const auto is_large = [most](const Expr& part) {
    int64_t left = most;
    return !counted_down(part, left);
  };
  const Expr* rest = &size;
  while (const auto* sum = as<expr::Binary>(*rest)) {
    if (sum->op != BinaryOp::add && sum->op != BinaryOp::sub) break;
    if (is_large(sum->b)) return true;
    rest = &sum->a;
  }
  return is_large(*rest);
}

Error check_parts(const Expr& size) {
  if (!has_many_parts(size)) return Error::success();
  return make_error(DiagCode::limit, "a size is an expression of more than {0} parts", kMostParts);
}

std::optional<int64_t> most_counted(const Expr& size, const Ranges& ranges) {
  const std::optional<Bounds> ends = size_ends(size, ranges);
  return ends ? ends->max : std::nullopt;
}

}  // namespace tw
