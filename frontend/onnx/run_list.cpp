#include "frontend/onnx/run_list.h"

#include <algorithm>

namespace tw::onnx_import {
namespace {

Shape most_of(NodeImport& n, const RunList& list) {
  const Shape& shape = n.shape(list.rows);
  return n.failed() ? Shape() : Shape(shape.begin() + 1, shape.end());
}

int64_t rank_of(NodeImport& n, const RunList& list) { return n.rank(list.rows) - 1; }

// v filled up with zeros at the ends of its axes. `to` must be at least its own extents.
Val padded(NodeImport& n, Val v, const Shape& to) {
  if (n.failed()) return {};
  op::Pad pad{PadMode::constant, Shape(to.size(), Expr(0)), {}};
  bool any = false;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    pad.ends.push_back(n.simplified(to[axis] - n.shape(v)[axis]));
    any = any || !is_const(pad.ends.back(), 0);
  }
  return any ? n.emit(std::move(pad), {v}) : v;
}

Shape behind(const Expr& first, const Shape& rest) {
  Shape shape = {first};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

// The rows in another order; `places` has their old positions.
RunList reordered(NodeImport& n, const RunList& list, Val places) {
  return {n.emit(op::Gather{0, true}, {list.rows, places}),
          n.emit(op::Gather{0, true}, {list.sizes, places}), list.least_rank};
}

// The items' sizes along an axis.
Val column(NodeImport& n, const RunList& list, int64_t axis) {
  return n.reshape(n.slice(list.sizes, 1, axis, 1), {length(n, list)});
}

// The extent that all items have along an axis, if it is known.
std::optional<Expr> known_extent(NodeImport& n, const RunList& list, int64_t axis) {
  const auto sizes = n.known(list.sizes);
  const int64_t rank = rank_of(n, list);
  if (!sizes || sizes->empty()) return std::nullopt;
  for (size_t i = static_cast<size_t>(axis); i < sizes->size(); i += static_cast<size_t>(rank))
    if (!equal(Shape{(*sizes)[i]}, Shape{(*sizes)[static_cast<size_t>(axis)]})) return std::nullopt;
  return (*sizes)[static_cast<size_t>(axis)];
}

// The extent that all items have along an axis, known or found by the run.
Expr common_extent(NodeImport& n, const RunList& list, int64_t axis) {
  if (const auto known = known_extent(n, list, axis)) return *known;
  const Val sizes = column(n, list, axis);
  const Expr most = n.symbol_of(n.reduce(ReduceKind::max, sizes, {0}, false), 0,
                                most_of(n, list)[static_cast<size_t>(axis)]);
  const Expr least = n.symbol_of(n.reduce(ReduceKind::min, sizes, {0}, false), 0);
  if (!n.failed() && !n.unify(least, most)) n.fail("items whose sizes only the run knows");
  return most;
}

bool of_one_rank(NodeImport& n, const RunList& list) {
  if (!n.failed() && list.least_rank != rank_of(n, list))
    n.fail("items of different ranks in a sequence whose length is computed from the data");
  return !n.failed();
}

Val cut_to(NodeImport& n, Val v, const Shape& to) {
  if (n.failed() || equal(n.shape(v), to)) return v;
  return n.emit(
      op::Slice{.starts = Shape(to.size(), Expr(0)), .steps = Ints(to.size(), 1), .sizes = to},
      {v});
}

}  // namespace

RunList run_list(NodeImport& n, Val list) {
  if (n.failed()) return {};
  const std::vector<Val> items = n.builder().items(list);
  return n.is_list(list, NodeImport::ListKind::rows)
             ? RunList{items[0], items[1], n.constants(items[2], "a rank")[0]}
             : run_list(n, items);
}

RunList run_list(NodeImport& n, const std::vector<Val>& items) {
  if (n.failed()) return {};
  int64_t rank = 0, least = n.rank(items[0]);
  for (Val item : items) {
    rank = std::max(rank, n.rank(item));
    least = std::min(least, n.rank(item));
    if (n.dtype(item) != n.dtype(items[0])) n.invalid("items of different types");
  }
  Shape most(static_cast<size_t>(rank), Expr(0));
  std::vector<Expr> sizes;
  for (Val item : items)
    for (int64_t axis = 0; axis < rank; ++axis) {
      const bool has = axis < n.rank(item);
      most[static_cast<size_t>(axis)] = n.simplified(
          max(most[static_cast<size_t>(axis)], has ? n.dim(item, axis) : Expr(1)));
      sizes.push_back(has ? n.dim(item, axis) : Expr(-1));
    }
  std::vector<Val> rows;
  for (Val item : items) {
    if (n.failed()) return {};
    Shape own = behind(1, n.shape(item));
    own.resize(most.size() + 1, Expr(1));
    rows.push_back(padded(n, n.reshape(item, own), behind(1, most)));
  }
  const auto count = static_cast<int64_t>(items.size());
  if (n.failed()) return {};
  return {rows.size() == 1 ? rows[0] : n.emit(op::Concat{0}, std::move(rows)),
          n.builder().known(std::move(sizes), DType::i64, {Expr(count), Expr(rank)}), least};
}

RunList no_items(NodeImport& n, const TensorType& like) {
  const auto rank = static_cast<int64_t>(like.shape.size());
  return {n.builder().add_constant(
              Tensor::zeros(like.dtype, std::vector<int64_t>(like.shape.size() + 1, 0))),
          n.builder().add_constant(Tensor::zeros(DType::i64, {0, rank})), rank};
}

Val as_value(NodeImport& n, const RunList& list) {
  if (n.failed()) return {};
  return n.builder().list(
      NodeImport::ListKind::rows,
      {list.rows, list.sizes, n.builder().known({Expr(list.least_rank)}, DType::i64, {})});
}

Expr length(NodeImport& n, const RunList& list) { return n.dim(list.rows, 0); }

RunList filled_up(NodeImport& n, const RunList& list, const Shape& most, int64_t least_rank) {
  if (n.failed()) return {};
  const Expr count = length(n, list);
  const auto rank = static_cast<int64_t>(most.size()), missing = rank - rank_of(n, list);
  Shape own = n.shape(list.rows);
  own.resize(most.size() + 1, Expr(1));
  Val sizes = list.sizes;
  if (missing > 0)
    sizes = n.emit(op::Concat{1},
                   {sizes, n.expand(n.scalar(-1, DType::i64), {count, Expr(missing)})});
  return {padded(n, n.reshape(list.rows, own), behind(count, most)), sizes,
          std::min(least_rank, list.least_rank)};
}

RunList joined(NodeImport& n, const RunList& front, const RunList& back) {
  if (n.failed() || is_const(length(n, front), 0)) return back;
  if (is_const(length(n, back), 0)) return front;
  if (n.dtype(front.rows) != n.dtype(back.rows)) n.invalid("items of different types");
  Shape most = most_of(n, front), other = most_of(n, back);
  const size_t rank = std::max(most.size(), other.size());
  most.resize(rank, Expr(1));
  other.resize(rank, Expr(1));
  for (size_t axis = 0; axis < rank; ++axis)
    most[axis] = n.simplified(max(most[axis], other[axis]));
  const int64_t least = std::min(front.least_rank, back.least_rank);
  const RunList a = filled_up(n, front, most, least), b = filled_up(n, back, most, least);
  return n.failed() ? RunList()
                    : RunList{n.emit(op::Concat{0}, {a.rows, b.rows}),
                              n.emit(op::Concat{0}, {a.sizes, b.sizes}), least};
}

Val item_at(NodeImport& n, const RunList& list, Val at) {
  if (!of_one_rank(n, list)) return {};
  const Shape most = most_of(n, list);
  const Val row = n.emit(op::Gather{0}, {list.rows, at}),
            sizes = n.emit(op::Gather{0}, {list.sizes, at});
  Shape shape;
  for (size_t axis = 0; axis < most.size(); ++axis) {
    const auto known = known_extent(n, list, static_cast<int64_t>(axis));
    shape.push_back(known ? *known : n.symbol_of(sizes, static_cast<int64_t>(axis), most[axis]));
  }
  return cut_to(n, row, shape);
}

RunList inserted(NodeImport& n, const RunList& list, Val at, Val item) {
  const RunList all = joined(n, list, run_list(n, std::vector{item}));
  if (n.failed() || !at.valid()) return all;
  const Expr count = length(n, list);
  const Val place = n.iota({n.simplified(count + Expr(1))}, 0), one = n.scalar(1, DType::i64);
  return reordered(n, all,
                   n.select(n.less(place, at), place,
                            n.select(n.less(at, place), n.sub(place, one), n.dim_value(count))));
}

RunList erased(NodeImport& n, const RunList& list, Val at) {
  if (n.failed()) return {};
  const Expr left = n.simplified(max(length(n, list) - Expr(1), Expr(0)));
  if (!at.valid())
    return {n.slice(list.rows, 0, 0, left), n.slice(list.sizes, 0, 0, left), list.least_rank};
  const Val place = n.iota({left}, 0);
  return reordered(n, list,
                   n.select(n.less(place, at), place, n.add(place, n.scalar(1, DType::i64))));
}

Val concatenated(NodeImport& n, const RunList& list, int64_t axis, bool fresh) {
  if (!of_one_rank(n, list)) return {};
  const Expr count = length(n, list);
  const Shape most = most_of(n, list);
  const auto rank = static_cast<int64_t>(most.size());
  Shape shape;
  for (int64_t a = 0; a < rank; ++a)
    shape.push_back(a == axis && !fresh ? most[static_cast<size_t>(a)] : common_extent(n, list, a));
  // The items' own axis moves in front of the one along which they are joined.
  Ints order;
  for (int64_t a = 1; a < rank + 1; ++a) order.push_back(a);
  order.insert(order.begin() + axis, 0);
  const Val rows = cut_to(n, list.rows, behind(count, shape));
  const Val moved = n.failed() ? Val{} : n.transpose(rows, order);
  if (fresh || n.failed()) return moved;
  const Expr& capacity = most[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = n.simplified(count * capacity);
  const Val flat = n.reshape(moved, shape), sizes = column(n, list, axis);
  // Element t of the result lies behind its place in `flat` by the filling of all items that end at
  // t or before.
  const Val item = n.iota({count, count}, 1), until = n.iota({count, count}, 0),
            zero = n.scalar(0, DType::i64);
  const Val ends = n.reduce(ReduceKind::sum, n.select(n.less(until, item), zero, sizes), {1},
                            false);
  const Expr total = n.symbol_of(n.reduce(ReduceKind::sum, sizes, {0}, false), 0,
                                 shape[static_cast<size_t>(axis)]);
  const Val t = n.iota({total}, 0), filling = n.sub(n.dim_value(capacity), sizes);
  const Val skipped = n.reduce(
      ReduceKind::sum, n.select(n.less(n.reshape(t, {total, Expr(1)}), ends), zero, filling), {1},
      false);
  return n.emit(op::Gather{axis, true}, {flat, n.add(t, skipped)});
}

}  // namespace tw::onnx_import
