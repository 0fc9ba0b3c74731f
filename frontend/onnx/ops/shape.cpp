// Importers of operators that only change the shape, and of those that read it.
#include <algorithm>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {
namespace {

// The product of `all` divided by that of `part`, which must divide it.
Expr quotient(NodeImport& n, const Shape& all, const Shape& part) {
  const auto counts = counts_without_common_factors(all, part);
  if (!counts) n.invalid(to_string(all) + " has more elements than can be counted");
  if (!counts || is_const(counts->first, 0) || is_const(counts->second, 0)) return 0;
  return is_const(counts->second, 1) ? counts->first
                                     : n.simplified(floor_div(counts->first, counts->second));
}

// The list of axes if only the run knows it, else invalid.
Val open_axes(NodeImport& n) {
  const Val axes = n.maybe(1);
  return axes.valid() && n.rank(axes) == 1 && n.static_dim(axes, 0).value_or(0) > 0 &&
                 !n.known(axes)
             ? axes
             : Val{};
}

void reshape_to(NodeImport& n, Val x, Val list) {
  const std::vector<Expr> dims = n.dims(list, "the shape");
  if (!n.failed()) n.set(n.reshape(x, Shape(dims.begin(), dims.end())));
}

// The list of axes: an attribute before version 13, later an input.
std::optional<Ints> axes_of(NodeImport& n) {
  if (n.has(1)) return n.constants(n.in(1), "the list of axes");
  return n.integers("axes");
}

// The vector of a shape that data decide, with 0 and -1 replaced in the run.
Val resolved_shape(NodeImport& n, Val x, Val given, int64_t count, bool allow_zero) {
  const Val zero = n.scalar(0, DType::i64), one = n.scalar(1, DType::i64);
  Val shape = n.reshape(n.cast(given, DType::i64), {count});
  std::vector<Expr> own;
  Expr all = 1;
  // -2 fails in the run if a 0 takes it
  for (int64_t i = 0; i < count; ++i) own.push_back(i < n.rank(x) ? n.dim(x, i) : Expr(-2));
  for (const Expr& dim : n.shape(x)) all = all * dim;
  if (!allow_zero)
    shape = n.select(n.binary(BinaryOp::eq, shape, zero), n.dim_values(std::move(own)), shape);
  const Val open = n.binary(BinaryOp::eq, shape, n.scalar(-1, DType::i64));
  const Val others = n.reduce(ReduceKind::prod, n.select(open, one, shape), {0}, true);
  const Val rest = n.div(n.dim_values({n.simplified(all)}), n.max(others, one));
  return n.select(open, rest, shape);
}

// Entries of the shape that are known before the run are taken from the import. If only one entry
// is unknown, it follows from the others.
Shape shape_from_data(NodeImport& n, Val x, Val given, bool allow_zero) {
  const int64_t count = n.length(given, "the shape").value_or(0);
  const Val resolved = resolved_shape(n, x, given, count, allow_zero);
  Shape shape(static_cast<size_t>(count));
  std::vector<size_t> unknown;
  for (size_t i = 0; i < shape.size() && !n.failed(); ++i) {
    Val v = given;
    int64_t index = static_cast<int64_t>(i);
    const std::optional<Expr> known = n.builder().known_element(v, index);
    const Bounds bounds = known ? constant_bounds(*known, n.builder().symbols()) : Bounds();
    if (known && bounds.min.value_or(-1) >= (allow_zero ? 0 : 1)) shape[i] = *known;
    else if (known && is_const(*known, 0) && static_cast<int64_t>(i) < n.rank(x))
      shape[i] = n.dim(x, static_cast<int64_t>(i));
    else unknown.push_back(i);
  }
  for (size_t i : unknown) {
    shape[i] = n.symbol_of(resolved, static_cast<int64_t>(i));
    if (unknown.size() > 1 || n.failed()) continue;
    Shape others = shape;
    others.erase(others.begin() + static_cast<int64_t>(i));
    Expr product = 1;
    for (const Expr& dim : others) product = product * dim;
    if (constant_bounds(n.simplified(product), n.builder().symbols()).min.value_or(0) < 1) continue;
    const Expr rest = quotient(n, n.shape(x), others);
    if (n.unify(shape[i], rest)) shape[i] = rest;
  }
  return shape;
}

}  // namespace

// 0 copies the input's extent (unless allowzero is set); one entry of -1 stands for the remaining
// elements.
void import_reshape(NodeImport& n) {
  const Val x = n.in(0);
  const bool allow_zero = n.integer("allowzero", 0) != 0;
  const std::optional<std::vector<Expr>> known = n.known(n.in(1));
  if (n.failed()) return;
  if (!known) {
    Shape made = shape_from_data(n, x, n.in(1), allow_zero);
    return n.set(n.reshape(x, std::move(made)));
  }
  Shape shape = *known;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::optional<int64_t> given = as_const(shape[i]);
    if (!given || *given > 0) continue;
    if (*given == 0 && !allow_zero) {
      if (static_cast<int64_t>(i) >= n.rank(x))
        return n.invalid(
            llvm::formatv("shape entry {0} copies an axis that is not there", i).str());
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
    int64_t product = 1;
    for (const Expr& extent : others)
      if (__builtin_mul_overflow(product, as_const(extent).value_or(1), &product))
        return n.invalid("the shape " + to_string(shape) +
                         " has more elements than can be counted");
    shape[*inferred] = quotient(n, n.shape(x), others);
  }
  n.set(n.reshape(x, std::move(shape)));
}

void import_flatten(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t rank = n.rank(x);
  int64_t axis = n.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (!n.failed() && (axis < 0 || axis > rank))
    return n.invalid(llvm::formatv("axis {0} is out of range for rank {1}", axis, rank).str());
  Expr rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i) {
    Expr& side = i < axis ? rows : columns;
    side = side * n.dim(x, i);
  }
  n.set(n.reshape(x, {rows, columns}));
}

void import_squeeze(NodeImport& n) {
  Val x = n.in(0);
  if (const Val open = open_axes(n); open.valid() && !n.failed()) {
    const Val flags = axis_flags(n, open, n.rank(x));
    return reshape_to(
        n, x, without_flagged(n, extents_of(n, x), flags, n.rank(x) - *n.static_dim(open, 0)));
  }
  const std::optional<Ints> given = axes_of(n);
  const Ints axes = given ? n.axes(*given, n.rank(x)) : Ints();
  Shape shape;
  for (int64_t i = 0; i < n.rank(x) && !n.failed(); ++i) {
    const bool listed = std::binary_search(axes.begin(), axes.end(), i);
    const std::optional<int64_t> extent = n.static_dim(x, i);
    if (listed && extent && *extent != 1)
      return n.invalid(llvm::formatv("squeezed axis {0} has extent {1}", i, *extent).str());
    if (listed && !extent) x = n.with_extent(x, i, 1);
    if (given ? !listed : !(extent && *extent == 1)) shape.push_back(n.dim(x, i));
  }
  n.set(n.reshape(x, std::move(shape)));
}

namespace {

// Entry i of the shape is 1 if it has a flag. Otherwise it is the extent of the axis whose number
// is the count of entries without a flag before it.
void unsqueeze_open(NodeImport& n, Val x, Val axes) {
  const int64_t rank = n.rank(x) + *n.static_dim(axes, 0);
  const Val flags = axis_flags(n, axes, rank), one = integer(n, 1);
  if (n.rank(x) == 0) return n.set(n.reshape(x, Shape(static_cast<size_t>(rank), Expr(1))));
  const Val place = n.emit(op::Cumulate{ReduceKind::sum, 0, true, false}, {n.sub(one, flags)});
  reshape_to(n, x, where_flagged(n, flags, one, take(n, extents_of(n, x), {-1}, {place}, {rank})));
}

}  // namespace

void import_unsqueeze(NodeImport& n) {
  const Val x = n.in(0);
  if (const Val open = open_axes(n); open.valid() && !n.failed()) return unsqueeze_open(n, x, open);
  const Ints given = axes_of(n).value_or(Ints());
  const int64_t rank = n.rank(x) + static_cast<int64_t>(given.size());
  const Ints axes = n.axes(given, rank);
  Shape shape;
  for (int64_t i = 0, from = 0; i < rank && !n.failed(); ++i)
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? Expr(1) : n.dim(x, from++));
  n.set(n.reshape(x, std::move(shape)));
}

// The shape and the input's shape broadcast both ways. An entry that data decide is 1 or the
// input's extent, unless that extent is 1.
void import_expand(NodeImport& n) {
  const Val x = n.in(0), given = n.in(1);
  const int64_t count = n.length(given, "the shape").value_or(0), offset = n.rank(x) - count;
  Shape wanted;
  for (int64_t i = 0; i < count && !n.failed(); ++i) {
    Val v = given;
    int64_t index = i;
    const std::optional<Expr> known = n.builder().known_element(v, index);
    const Expr own = n.dim(x, i + offset);
    if (known || is_const(own, 1)) {
      wanted.push_back(known ? *known : n.symbol_of(given, i));
      continue;
    }
    const Val one = n.scalar(1, DType::i64), asked = n.element_value(given, i),
              had = n.dim_value(own);
    if (as_const(own)) {
      const Expr made = n.symbol_of(n.select(n.binary(BinaryOp::eq, asked, one), had, asked), 0);
      if (!n.failed()) n.unify(made, own);
      wanted.push_back(own);
    } else {
      const auto is = [&](Val a, Val b) { return n.binary(BinaryOp::eq, a, b); };
      // No run accepts a size of -1
      const Val fits = n.binary(BinaryOp::logical_or, is(asked, one), is(asked, had)),
                refused = n.scalar(-1, DType::i64);
      wanted.push_back(n.symbol_of(n.select(is(had, one), asked, n.select(fits, had, refused)), 0));
    }
  }
  if (n.failed()) return;
  Shape shape = n.shape(x);
  if (offset < 0) shape.insert(shape.begin(), static_cast<size_t>(-offset), Expr(1));
  for (int64_t i = 0; i < count; ++i) {
    Expr& made = shape[static_cast<size_t>(i + std::max<int64_t>(offset, 0))];
    if (!is_const(wanted[static_cast<size_t>(i)], 1)) made = wanted[static_cast<size_t>(i)];
  }
  n.set(n.expand(x, std::move(shape)));
}

// [a, b] by [r, s]: reshape to [1, a, 1, b], expand to [r, a, s, b], reshape to [r a, s b]
void import_tile(NodeImport& n) {
  const Val x = n.in(0);
  const Shape repeats = n.dims(n.in(1), "the repeats");
  if (n.failed()) return;
  if (static_cast<int64_t>(repeats.size()) != n.rank(x))
    return n.invalid("repeats must have one entry an axis");
  Shape parted, expanded, joined;
  for (int64_t i = 0; i < n.rank(x); ++i) {
    const Expr& repeat = repeats[static_cast<size_t>(i)];
    if (const auto count = as_const(repeat); count && *count < 0)
      return n.invalid("a negative repeat");
    if (!is_const(repeat, 1)) {
      parted.push_back(1);
      expanded.push_back(repeat);
    }
    parted.push_back(n.dim(x, i));
    expanded.push_back(n.dim(x, i));
    joined.push_back(repeat * n.dim(x, i));
  }
  n.set(
      n.reshape(n.expand(n.reshape(x, std::move(parted)), std::move(expanded)), std::move(joined)));
}

void import_shape(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t rank = n.rank(x);
  const auto clamped = [&](int64_t v) {
    return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  const int64_t start = clamped(n.integer("start", 0)),
                end = std::max(start, clamped(n.integer("end", rank)));
  if (n.failed()) return;
  std::vector<Expr> dims(n.shape(x).begin() + start, n.shape(x).begin() + end);
  n.set(n.builder().known(std::move(dims), DType::i64, {end - start}));
}

void import_size(NodeImport& n) {
  const Val x = n.in(0);
  Expr size = 1;
  for (const Expr& dim : n.shape(x)) size = size * dim;
  if (!n.failed()) n.set(n.builder().known({n.simplified(size)}, DType::i64, {}));
}

}  // namespace tw::onnx_import
