#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {
namespace {

Val row(NodeImport& n, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return table(n, values, {count}, DType::i64);
}

Val one(NodeImport& n) { return integer(n, 1); }

// The entries of the list as extents. Each is at most the extent of x, or 1.
std::vector<Expr> extents_within(NodeImport& n, Val list, Val x) {
  std::vector<Expr> extents;
  for (int64_t i = 0; i < n.rank(x) && !n.failed(); ++i)
    extents.push_back(n.symbol_of(list, i, n.simplified(max(n.dim(x, i), Expr(1)))));
  return extents;
}

}  // namespace

Val axis_flags(NodeImport& n, Val axes, int64_t rank) {
  if (n.failed()) return {};
  if (const int64_t count = n.static_dim(axes, 0).value_or(0); count > rank) {
    n.invalid(llvm::formatv("{0} axes of a tensor of rank {1}", count, rank).str());
    return {};
  }
  const Val wanted = n.reshape(place_of(n, axes, rank, "axis"), {n.dim(axes, 0), 1});
  const Val hits = n.cast(n.binary(BinaryOp::eq, wanted, row(n, rank)), DType::i64);
  const Val often = n.reduce(ReduceKind::sum, hits, {0}, false);
  return n.only_where(often, n.less(often, integer(n, 2)), "an axis is given twice");
}

PerAxis::PerAxis(NodeImport& n, Val axes, int64_t count, int64_t rank)
    : n_(n), count_(count), rank_(rank) {
  if (!axes.valid()) axes = row(n, count);
  flags_ = axis_flags(n, axes, rank);
  wanted_ = n.reshape(place_of(n, axes, rank, "axis"), {count, 1});
}

Val PerAxis::list(Val values, Val fallback) const {
  const Val hit = n_.binary(BinaryOp::eq, wanted_, row(n_, rank_)),
            column = n_.reshape(n_.cast(values, DType::i64), {count_, 1});
  const Val placed = n_.reduce(ReduceKind::sum, n_.select(hit, column, integer(n_, 0)), {0}, false);
  return where_flagged(n_, flags_, placed, fallback);
}

bool PerAxis::touches(int64_t axis) const {
  const auto flags = n_.known(flags_);
  return !flags || !is_const((*flags)[static_cast<size_t>(axis)], 0);
}

Val extents_of(NodeImport& n, Val x) {
  return n.failed() ? Val{} : n.builder().known(n.shape(x), DType::i64, {n.rank(x)});
}

Val where_flagged(NodeImport& n, Val flags, Val a, Val b) {
  return n.select(n.binary(BinaryOp::eq, flags, one(n)), a, b);
}

// Element j is the sum of the elements without a flag that have j others without a flag before
// them: one element.
Val without_flagged(NodeImport& n, Val list, Val flags, int64_t count) {
  if (n.failed()) return {};
  const Val stays = n.sub(one(n), flags),
            place = n.emit(op::Cumulate{ReduceKind::sum, 0, true, false}, {stays});
  const Val here = n.binary(BinaryOp::eq, place, n.reshape(row(n, count), {count, 1}));
  return n.reduce(ReduceKind::sum, n.select(here, n.mul(list, stays), integer(n, 0)), {1}, false);
}

Val reduce_flagged(NodeImport& n, ReduceKind kind, Val x, Val flags, int64_t listed, bool keep) {
  const int64_t rank = n.rank(x);
  if (n.failed()) return {};
  const Val extents = extents_of(n, x);
  const std::vector<Expr> stay = extents_within(n, where_flagged(n, flags, one(n), extents), x);
  const std::vector<Expr> go = extents_within(n, where_flagged(n, flags, extents, one(n)), x);
  if (n.failed() || stay.size() != go.size()) return {};
  Shape shape(stay.begin(), stay.end());
  shape.insert(shape.end(), go.begin(), go.end());
  Ints reduced;
  std::vector<Val> tables;
  for (int64_t i = 0; i < rank; ++i) {
    reduced.push_back(rank + i);
    tables.push_back(n.add(positions(n, shape[static_cast<size_t>(i)], 2 * rank, i),
                           positions(n, shape[static_cast<size_t>(rank + i)], 2 * rank, rank + i)));
  }
  const Val y = n.reduce(kind,
                         take(n, x, Ints(static_cast<size_t>(rank), -1), std::move(tables), shape),
                         std::move(reduced), false);
  if (keep || n.failed()) return y;
  const std::vector<Expr> left = n.dims(without_flagged(n, extents, flags, rank - listed),
                                        "the reduced shape");
  return n.failed() ? Val{} : n.reshape(y, Shape(left.begin(), left.end()));
}

Val stretched(NodeImport& n, Val v, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<Val> tables;
  // Indices into an extent of 1 are clamped to it
  for (int64_t i = 0; i < rank; ++i)
    tables.push_back(positions(n, shape[static_cast<size_t>(i)], rank, i));
  return take(n, v, Ints(shape.size(), -1), std::move(tables), shape);
}

namespace {

// The extents of the chosen value; all values have the same rank.
Shape chosen_shape(NodeImport& n, const std::vector<Val>& values, Val chosen) {
  bool same = true;
  for (const Val v : values) same = same && equal(n.shape(v), n.shape(values[0]));
  if (same) return n.shape(values[0]);
  Val extents = extents_of(n, values[0]);
  for (size_t i = 1; i < values.size(); ++i)
    extents = n.select(n.binary(BinaryOp::eq, chosen, integer(n, static_cast<int64_t>(i))),
                       extents_of(n, values[i]), extents);
  const std::vector<Expr> dims = n.dims(extents, "a shape that an axis decides");
  return {dims.begin(), dims.end()};
}

}  // namespace

Val by_axis(NodeImport& n, Val axis, int64_t rank, int64_t count,
            const std::function<Val(int64_t)>& make) {
  if (const auto known = n.known(axis); known && known->size() == 1 && as_const(known->front()))
    return make(n.axis(*as_const(known->front()), rank));
  Val chosen = place_of(n, n.reshape(axis, {}), rank, "axis");
  if (count < rank) chosen = n.within(chosen, 0, count - 1, "axis");
  std::vector<Val> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(make(i));
  if (n.failed()) return {};
  const Shape shape = chosen_shape(n, values, chosen);
  if (n.failed()) return {};
  const auto fitted = [&](Val v) { return equal(n.shape(v), shape) ? v : stretched(n, v, shape); };
  Val result = fitted(values[0]);
  for (size_t i = 1; i < values.size(); ++i)
    result = n.select(n.binary(BinaryOp::eq, chosen, integer(n, static_cast<int64_t>(i))),
                      fitted(values[i]), result);
  // If all results are equal, nothing else reads the axis, and so nothing would check it
  return n.only_where(result, n.binary(BinaryOp::le, integer(n, 0), chosen), "an axis below 0");
}

}  // namespace tw::onnx_import
