// Operators that only change the shape, and those that read it.
#include <algorithm>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// Splits a product into its constant and its other factors.
void factors(const Expr& e, int64_t& constant, std::vector<Expr>& rest) {
  if (const auto value = as_const(e)) {
    constant *= *value;
  } else if (e->kind == ExprKind::binary && e->binary == BinaryOp::mul) {
    factors(e->args[0], constant, rest);
    factors(e->args[1], constant, rest);
  } else {
    rest.push_back(e);
  }
}

// The product of `all` divided by the product of `part`, which divides it. Equal factors cancel.
Expr quotient(NodeImport& n, const Shape& all, const Shape& part) {
  int64_t above = 1, below = 1;
  std::vector<Expr> numerator, denominator;
  for (const Expr& e : all) factors(e, above, numerator);
  for (const Expr& e : part) factors(e, below, denominator);
  Expr left = 1, right = 1;
  for (const Expr& e : denominator) {
    const auto same = std::find_if(numerator.begin(), numerator.end(), [&](const Expr& x) { return equal(x, e); });
    if (same == numerator.end()) right = right * e;
    else numerator.erase(same);
  }
  for (const Expr& e : numerator) left = left * e;
  if (below == 0) return 0;
  if (above % below == 0) left = left * Expr(above / below);
  else left = left * Expr(above), right = right * Expr(below);
  return is_const(right, 1) ? n.simplified(left) : n.simplified(floor_div(left, right));
}

// A list that is an attribute before version 13 and an input since.
std::optional<Ints> axes_of(NodeImport& n) {
  if (n.has(1)) return n.constants(n.in(1), "the list of axes");
  return n.integers("axes");
}

}  // namespace

// 0 copies the input's extent (unless allowzero), one -1 is what remains.
void import_reshape(NodeImport& n, int) {
  const Val x = n.in(0);
  const bool allow_zero = n.integer("allowzero", 0) != 0;
  Shape shape = n.dims(n.in(1), "the shape");
  if (n.failed()) return;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::optional<int64_t> given = as_const(shape[i]);
    if (!given || *given > 0) continue;
    if (*given == 0 && !allow_zero) {
      if (static_cast<int64_t>(i) >= n.rank(x)) return n.invalid(llvm::formatv("shape entry {0} copies an axis that is not there", i).str());
      shape[i] = n.dim(x, static_cast<int64_t>(i));
    } else if (*given == -1 && !inferred) {
      inferred = i;
    } else if (*given < 0) {
      return n.invalid("the shape has a negative entry");
    }
  }
  if (inferred) {
    Shape others = shape;
    others.erase(others.begin() + static_cast<int64_t>(*inferred));
    shape[*inferred] = quotient(n, n.shape(x), others);
  }
  n.set(n.reshape(x, std::move(shape)));
}

void import_flatten(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t rank = n.rank(x);
  int64_t axis = n.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (!n.failed() && (axis < 0 || axis > rank)) return n.invalid(llvm::formatv("axis {0} is out of range for rank {1}", axis, rank).str());
  Expr rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i) {
    Expr& side = i < axis ? rows : columns;
    side = side * n.dim(x, i);
  }
  n.set(n.reshape(x, {rows, columns}));
}

void import_squeeze(NodeImport& n, int) {
  const Val x = n.in(0);
  const std::optional<Ints> given = axes_of(n);
  const Ints axes = given ? n.axes(*given, n.rank(x)) : Ints();
  Shape shape;
  for (int64_t i = 0; i < n.rank(x) && !n.failed(); ++i) {
    const bool listed = std::binary_search(axes.begin(), axes.end(), i);
    const std::optional<int64_t> extent = n.static_dim(x, i);
    if (listed && extent && *extent != 1) return n.invalid(llvm::formatv("squeezed axis {0} has extent {1}", i, *extent).str());
    if (listed && !extent) return n.fail_symbolic(llvm::formatv("squeezed axis {0} is symbolic", i).str());
    if (given ? !listed : !(extent && *extent == 1)) shape.push_back(n.dim(x, i));
  }
  n.set(n.reshape(x, std::move(shape)));
}

void import_unsqueeze(NodeImport& n, int) {
  const Val x = n.in(0);
  const Ints given = axes_of(n).value_or(Ints());
  const int64_t rank = n.rank(x) + static_cast<int64_t>(given.size());
  const Ints axes = n.axes(given, rank);
  Shape shape;
  for (int64_t i = 0, from = 0; i < rank && !n.failed(); ++i)
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? Expr(1) : n.dim(x, from++));
  n.set(n.reshape(x, std::move(shape)));
}

// The shape broadcasts with the input's, both ways.
void import_expand(NodeImport& n, int) {
  const Val x = n.in(0);
  const Shape wanted = n.dims(n.in(1), "the shape");
  if (n.failed()) return;
  Expected<Shape> shape = broadcast_shapes(n.shape(x), wanted);
  if (!shape) return n.invalid(error_text(shape.takeError()));
  n.set(n.expand(x, std::move(*shape)));
}

// [a, b] by [r, s]: reshape to [1, a, 1, b], expand to [r, a, s, b], reshape to [r a, s b]
void import_tile(NodeImport& n, int) {
  const Val x = n.in(0);
  const Shape repeats = n.dims(n.in(1), "the repeats");
  if (n.failed()) return;
  if (static_cast<int64_t>(repeats.size()) != n.rank(x)) return n.invalid("repeats must have one entry an axis");
  Shape parted, expanded, joined;
  for (int64_t i = 0; i < n.rank(x); ++i) {
    const Expr& repeat = repeats[static_cast<size_t>(i)];
    if (const auto count = as_const(repeat); count && *count < 0) return n.invalid("a negative repeat");
    if (!is_const(repeat, 1)) {
      parted.push_back(1);
      expanded.push_back(repeat);
    }
    parted.push_back(n.dim(x, i));
    expanded.push_back(n.dim(x, i));
    joined.push_back(repeat * n.dim(x, i));
  }
  n.set(n.reshape(n.expand(n.reshape(x, std::move(parted)), std::move(expanded)), std::move(joined)));
}

// Axes [start, end) of the shape, clamped.
void import_shape(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t rank = n.rank(x);
  const auto clamped = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = clamped(n.integer("start", 0)), end = std::max(start, clamped(n.integer("end", rank)));
  if (n.failed()) return;
  std::vector<Expr> dims(n.shape(x).begin() + start, n.shape(x).begin() + end);
  n.set(n.builder().known(std::move(dims), DType::i64, {end - start}));
}

void import_size(NodeImport& n, int) {
  const Val x = n.in(0);
  Expr size = 1;
  for (const Expr& dim : n.shape(x)) size = size * dim;
  if (!n.failed()) n.set(n.builder().known({n.simplified(size)}, DType::i64, {}));
}

}  // namespace tw::onnx_import
