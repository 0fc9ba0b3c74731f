// Tensor types: text, equality modulo simplify, broadcasting. A symbol's name says its least value
// (ir/symbols.h).
#include <algorithm>

#include "ir/graph/graph.h"
#include "ir/graph/unequal_dims.h"
#include "ir/scalar_ops.h"
#include "ir/simplify.h"
#include "ir/size_ends.h"

namespace tw {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 44;
// Loops run over the other extents of a tensor without elements. This limits their product.
constexpr int64_t kMaxEmptyWalk = int64_t{1} << 31;
constexpr size_t kMaxRank = 64;

}  // namespace

Expr simplify_dim(const Expr& dim) {
  if (is<expr::Int, expr::Var>(dim)) return dim;
  return simplify(dim, symbol_ranges(dim));
}

Expr simplify_dim(const Expr& dim, const SymbolLimitsOf& limits) {
  if (limits.empty() || as_const(dim)) return simplify_dim(dim);
  Ranges ranges = symbol_ranges(dim);
  for (auto& [symbol, range] : ranges)
    if (const auto found = limits.find(symbol); found != limits.end())
      range = {Expr(found->second.least),
               found->second.most < INT64_MAX ? Expr(found->second.most) : Expr()};
  return simplify(dim, ranges);
}

bool equal(const Shape& a, const Shape& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) {
    return equal(x, y) || is_const(simplify_dim(x - y), 0);
  });
}

bool equal(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.layout == b.layout && equal(a.shape, b.shape);
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + to_string(shape[i]);
  return text + "]";
}

std::string to_string(const TensorType& t) {
  std::string text = dtype_name(t.dtype) + to_string(t.shape);
  if (!t.layout.plain()) text += llvm::formatv("@{0}:{1}", t.layout.axis, t.layout.block).str();
  return text;
}

Shape physical_shape(const TensorType& t) {
  Shape shape = t.shape;
  if (t.layout.plain()) return shape;
  Expr& dim = shape[static_cast<size_t>(t.layout.axis)];
  dim = simplify_dim(ceil_div(dim, t.layout.block));
  shape.push_back(t.layout.block);
  return shape;
}

std::optional<std::vector<int64_t>> static_shape(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Expr& dim : shape) {
    std::optional<int64_t> extent = as_const(dim);
    if (!extent) return std::nullopt;
    out.push_back(*extent);
  }
  return out;
}

Expr element_count(const Shape& shape) {
  Expr count = 1;
  for (const Expr& dim : shape) count = count * dim;
  return simplify_dim(count);
}

Expected<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    Expr x = i + a.size() < rank ? Expr(1) : a[i + a.size() - rank];
    Expr y = i + b.size() < rank ? Expr(1) : b[i + b.size() - rank];
    if (is_const(x, 1)) out[i] = y;
    else if (is_const(y, 1) || equal(Shape{x}, Shape{y})) out[i] = x;
    else
      return unequal_dims(x, y,
                          llvm::formatv("shapes {0} and {1} do not broadcast: {2} against {3}",
                                        to_string(a), to_string(b), to_string(x), to_string(y)));
  }
  return out;
}

bool may_be_equal(const Expr& a, const Expr& b) {
  const Expr difference = simplify_dim(a - b);
  const Bounds bounds = constant_bounds(difference, symbol_ranges(difference));
  if (bounds.min.value_or(0) > 0 || bounds.max.value_or(0) < 0) return false;
  bool possible = true;  // false where divisibility rules equality out: 4 n is never 7
  visit(difference, [&](const Expr& e) {
    const auto* product = as_binary(e, BinaryOp::mul);
    const auto factor = product ? as_const(product->b) : std::nullopt;
    if (!factor || *factor < 2) return;
    const auto rest = as_const(simplify_dim(floor_mod(difference, Expr(*factor))));
    possible = possible && rest.value_or(0) == 0;
  });
  return possible;
}

bool is_data_dependent(const Expr& dim) {
  bool found = false;
  visit(dim, [&](const Expr& e) {
    const std::string* name = var_name(e);
    found = found || (name && least_of(*name) == 0);
  });
  return found;
}

Error check_dim_expr(const Expr& dim) {
  if (!dim.defined() || dim.type() != DType::i64)
    return make_error(DiagCode::invalid_model, "a dim must be an i64 expression");
  TW_TRY(check_parts(dim));
  const char* problem = nullptr;
  visit(dim, [&](const Expr& e) {
    if (is<expr::Load>(e) || !(is_int(e.type()) || e.type() == DType::boolean))
      problem = "is not made of symbols and integers";
    const auto* quotient = as<expr::Binary>(e);
    if (!quotient || !divides(quotient->op)) return;
    Bounds divisor = constant_bounds(quotient->b, symbol_ranges(quotient->b));
    if (divisor.min.value_or(0) < 1) problem = "has a divisor that may be 0 or negative";
  });
  if (!problem) return Error::success();
  return make_error(DiagCode::invalid_model, "dim {0} {1}",
                    to_string(dim, [](BufferId) { return "buffer"; }), problem);
}

Error check_type(const TensorType& t) {
  for (const Expr& dim : t.shape) TW_TRY(check_dim_expr(dim));
  auto fail = [&](const char* what) {
    return make_error(DiagCode::limit, "type {0}: {1}", to_string(t), what);
  };
  if (t.shape.size() > kMaxRank)
    return make_error(DiagCode::limit, "rank {0} is above the limit of {1}", t.shape.size(),
                      kMaxRank);
  int64_t count = 1;
  bool empty = false;
  for (const Expr& dim : t.shape) {
    // A symbol counts at its least value. Even the smallest sizes must not be too large.
    const std::optional<int64_t> known = as_const(dim);
    const int64_t extent = known ? *known : most_counted(dim).value_or(kMostCounted);
    if (known && extent < 0)
      return make_error(DiagCode::invalid_model, "type {0}: a negative dim", to_string(t));
    if (extent > kMostExtent) return fail("a dim is above 2^40");
    if (extent > 1 && count > kMaxElements / extent) return fail("more than 2^44 elements");
    count *= std::max<int64_t>(extent, 1);
    empty |= known == 0;
  }
  if (empty && count > kMaxEmptyWalk)
    return fail("no elements, and more than 2^31 along the other dims");
  if (t.layout.plain()) return Error::success();
  if (t.layout.axis < 0 || t.layout.axis >= static_cast<int>(t.shape.size()) ||
      t.layout.block < 0 || t.layout.block > 4096)
    return make_error(DiagCode::invalid_model, "type {0}: the layout does not fit the shape",
                      to_string(t));
  return Error::success();
}

}  // namespace tw
