#include "ir/data_range.h"

#include <algorithm>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

constexpr DataRange kAny{};

std::optional<DataRange> fitting(__int128 least, __int128 most) {
  if (least < INT64_MIN || most > INT64_MAX) return std::nullopt;
  return DataRange{static_cast<int64_t>(least), static_cast<int64_t>(most)};
}

DataRange range_or_sizes(const Expr& e) {
  if (const auto value = as_const(e)) return {*value, *value};
  return e->data.value_or(kSizes);
}

DataRange over_both(const DataRange& a, const DataRange& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most)};
}

DataRange of_type(DType t) {
  if (t == DType::boolean) return {0, 1};
  return is_int(t) && dtype_bytes(t) < 8 ? DataRange{lowest_of(t), highest_of(t)} : kAny;
}

// Quotient and remainder have no known range for a divisor that may be below 1.
DataRange quotient(const DataRange& a, const DataRange& by) {
  if (by.least < 1) return kAny;
  return {std::min<int64_t>(floor_div_int(a.least, by.least), 0),
          std::max<int64_t>(a.most, 0) / by.least};
}
DataRange remainder(const DataRange& by, bool floored) {
  if (by.least < 1 || by.most == INT64_MAX) return kAny;
  return {floored ? 0 : 1 - by.most, by.most - 1};
}

std::optional<DataRange> of_unary(UnaryOp op, const DataRange& a) {
  switch (op) {
    case UnaryOp::neg:
      return fitting(-static_cast<__int128>(a.most), -static_cast<__int128>(a.least));
    case UnaryOp::abs:
      return fitting(0, std::max<__int128>(a.most, -static_cast<__int128>(a.least)));
    case UnaryOp::sign: return DataRange{-1, 1};
    case UnaryOp::bit_not: return DataRange{-1 - a.most, -1 - a.least};
    default: return std::nullopt;
  }
}

std::optional<DataRange> of_binary(const expr::Binary& e) {
  const DataRange a = range_or_sizes(e.a), b = range_or_sizes(e.b);
  const bool both = e.a->data && e.b->data;
  switch (e.op) {
    case BinaryOp::add: return sum_range(a, b);
    case BinaryOp::sub: {
      const auto negated = of_unary(UnaryOp::neg, b);
      return negated ? sum_range(a, *negated) : std::nullopt;
    }
    case BinaryOp::mul:
      if (both || as_const(e.a) || as_const(e.b)) return product_range(a, b);
      return e.a->data ? a : b;  // the other factor is a stride, so the product is an index
    case BinaryOp::min: return DataRange{std::min(a.least, b.least), std::min(a.most, b.most)};
    case BinaryOp::max: return DataRange{std::max(a.least, b.least), std::max(a.most, b.most)};
    case BinaryOp::div:
    case BinaryOp::floor_div: return quotient(a, b);
    case BinaryOp::floor_mod: return remainder(b, true);
    case BinaryOp::mod: return remainder(b, false);
    case BinaryOp::bit_and:
      if (b.least >= 0) return DataRange{0, b.most};
      if (a.least >= 0) return DataRange{0, a.most};
      return std::nullopt;
    case BinaryOp::shr:
      return as_const(e.b) && b.least >= 0 && b.least < 63
                 ? std::optional(DataRange{a.least >> b.least, a.most >> b.least})
                 : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<DataRange> sum_range(const DataRange& a, const DataRange& b) {
  return fitting(static_cast<__int128>(a.least) + b.least, static_cast<__int128>(a.most) + b.most);
}

std::optional<DataRange> product_range(const DataRange& a, const DataRange& b) {
  const auto times = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
  const auto [least, most] = std::minmax({times(a.least, b.least), times(a.least, b.most),
                                          times(a.most, b.least), times(a.most, b.most)});
  return fitting(least, most);
}

static bool reaches_beyond_sizes(const expr::Binary& e) {
  const auto beyond = [](const Expr& operand) {
    const auto value = as_const(operand);
    return value && is_beyond_sizes(*value);
  };
  const bool adds = e.op == BinaryOp::add || e.op == BinaryOp::sub || e.op == BinaryOp::mul;
  return adds && (beyond(e.a) || beyond(e.b));
}

static bool is_from_data(const Expr& e) { return e.type() == DType::i64 && e->data.has_value(); }

std::optional<DataRange> data_range(const ExprNode& node) {
  if (node.type != DType::i64) return std::nullopt;
  using Found = std::optional<DataRange>;
  return match_kind(
      node.is, [](const expr::Load&) { return Found(kAny); },
      [](const expr::Cast& converted) {
        const DType from = converted.a.type();
        return from == DType::i64 ? converted.a->data : Found(of_type(from));
      },
      [](const expr::Select& choice) {
        if (!choice.then->data && !choice.otherwise->data) return Found();
        return Found(over_both(range_or_sizes(choice.then), range_or_sizes(choice.otherwise)));
      },
      [](const expr::Unary& e) {
        return is_from_data(e.a) ? Found(of_unary(e.op, *e.a->data).value_or(kAny)) : Found();
      },
      [](const expr::Binary& e) {
        const bool from_data = reaches_beyond_sizes(e) || is_from_data(e.a) || is_from_data(e.b);
        return from_data ? Found(of_binary(e).value_or(kAny)) : Found();
      },
      [](const auto&) { return Found(); });
}

}  // namespace tw
