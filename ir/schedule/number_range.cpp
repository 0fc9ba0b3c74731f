#include "ir/schedule/number_range.h"

#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

constexpr int64_t kFar = int64_t{1} << 30;  // limit of constants and of products

std::optional<Values> unless_far(const Values& values) {
  if (values.least < -kFar || values.most > kFar) return std::nullopt;
  return values;
}

// The number of bits of the integers that a float type has without gaps
int integer_bits(DType type) {
  switch (type) {
    case DType::f64: return 53;
    case DType::f32: return 24;
    case DType::f16: return 11;
    case DType::bf16: return 8;
    default: return 0;
  }
}

class NumberRange {
 public:
  explicit NumberRange(const Ranges& ranges) : ranges_(ranges) {}

  std::optional<Values> of(const Expr& e) const {
    if (const auto known = as_const(e)) return unless_far({*known, *known});
    if (is<expr::Load>(e)) return of_type(e.type());
    if (e.type() == DType::i64 && !has_load(e)) return of_index(e);
    if (const auto* cast = as<expr::Cast>(e)) return of_cast(*cast, e.type());
    if (const auto* select = as<expr::Select>(e)) {
      const auto a = of(select->then), b = of(select->otherwise);
      if (!a || !b) return std::nullopt;
      return Values{std::min(a->least, b->least), std::max(a->most, b->most)};
    }
    const auto* both = as<expr::Binary>(e);
    return both ? of_binary(*both) : std::nullopt;
  }

 private:
  static std::optional<Values> of_type(DType type) {
    return is_narrow(type) ? std::optional(all_of(type)) : std::nullopt;
  }

  // The values after they have wrapped
  std::optional<Values> wrapped(const Expr& e) const {
    const auto values = of(e);
    if (values && is_int(e.type()) && has_values(e.type(), *values)) return values;
    return of_type(e.type());
  }

  std::optional<Values> of_index(const Expr& e) const {
    const Bounds bounds = constant_bounds(e, ranges_);
    if (!bounds.min || !bounds.max) return std::nullopt;
    return unless_far({*bounds.min, *bounds.max});
  }

  std::optional<Values> of_cast(const expr::Cast& cast, DType type) const {
    if (cast.saturate || !is_int(cast.a.type()) || !is_int(type)) return std::nullopt;
    const auto values = wrapped(cast.a);
    return values && has_values(type, *values) ? values : std::nullopt;
  }

  std::optional<Values> of_binary(const expr::Binary& both) const {
    if (both.op == BinaryOp::add || both.op == BinaryOp::sub) {
      const auto a = of(both.a), b = of(both.b);
      if (!a || !b) return std::nullopt;
      return both.op == BinaryOp::add ? Values{a->least + b->least, a->most + b->most}
                                      : Values{a->least - b->most, a->most - b->least};
    }
    const auto a = wrapped(both.a), b = wrapped(both.b);
    if (both.op == BinaryOp::bit_and) {
      // A number without a sign is the mask of the other one.
      std::optional<int64_t> most;
      for (const auto& values : {a, b})
        if (values && values->least >= 0) most = std::min(most.value_or(kFar), values->most);
      return most ? std::optional(Values{0, *most}) : std::nullopt;
    }
    if (both.op == BinaryOp::shr && a && a->least >= 0) return Values{0, a->most};
    if (both.op != BinaryOp::mul || !a || !b) return std::nullopt;
    const int64_t products[] = {a->least * b->least, a->least * b->most, a->most * b->least,
                                a->most * b->most};
    const auto [least, most] = std::ranges::minmax(products);
    return unless_far({least, most});
  }

  const Ranges& ranges_;
};

}  // namespace

bool is_narrow(DType type) { return is_byte(type) || type == DType::i16 || type == DType::u16; }

Values all_of(DType type) {
  const int64_t count = int64_t{1} << (8 * dtype_bytes(type));
  return is_signed_int(type) ? Values{-count / 2, count / 2 - 1} : Values{0, count - 1};
}

bool has_values(DType type, const Values& values) {
  if (const int bits = integer_bits(type); bits > 0) {
    const int64_t most = int64_t{1} << bits;
    return -most <= values.least && values.most <= most;
  }
  if (!is_int(type)) return false;
  if (dtype_bytes(type) == 8) return is_signed_int(type) || values.least >= 0;
  const Values all = all_of(type);
  return all.least <= values.least && values.most <= all.most;
}

std::optional<Values> values_of(const Expr& e, const Ranges& ranges) {
  return NumberRange(ranges).of(e);
}

}  // namespace tw::sched
