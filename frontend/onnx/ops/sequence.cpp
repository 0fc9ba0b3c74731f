// Sequences and optionals: lists of values that exist while importing only, so that how many tensors they hold must be known there.
#include <algorithm>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxParts = 4096;   // of one tensor that is split

// Input i, a scalar: a position below `end` in a sequence of `count` items, counted from their end where it is negative. A failure when
// it is none, then 0.
int64_t position(NodeImport& n, size_t i, int64_t count, int64_t end) {
  const Ints given = n.constants(n.in(i), "the position");
  if (n.failed()) return 0;
  if (given.size() != 1) {
    n.invalid(llvm::formatv("the position has {0} elements", given.size()).str());
    return 0;
  }
  const int64_t at = given[0] < 0 ? given[0] + count : given[0];
  if (at >= 0 && at < end) return at;
  n.invalid(llvm::formatv("position {0} is out of range for {1} items", given[0], count).str());
  return 0;
}

// Input i, a position that is computed from the data, from the beginning of a sequence of `count` items. i64, rank 0.
Val position_value(NodeImport& n, size_t i, int64_t count) {
  const Val given = n.element_value(n.in(i), 0), zero = n.scalar(0, DType::i64);
  return n.failed() ? Val{} : n.select(n.less(given, zero), n.add(given, n.scalar(static_cast<double>(count), DType::i64)), given);
}

// The tensor flat, as one row of `room` elements.
Val flat_row(NodeImport& n, Val v, const Expr& room) {
  const Expr count = element_count(n.shape(v)), rest = n.simplified(room - count);
  const Val flat = n.reshape(v, {count});
  return n.reshape(is_const(rest, 0) ? flat : n.emit(op::Pad{PadMode::constant, {Expr(0)}, {rest}}, {flat}), {Expr(1), room});
}

// One of the tensors, which have one dtype and rank, by an index (i64, rank 0) that is computed from the data. Where their sizes differ, the result's
// are read while the model runs.
Val gathered(NodeImport& n, const std::vector<Val>& items, Val index) {
  if (n.failed()) return {};
  const Shape first = n.shape(items[0]);
  Shape most = first;
  Expr room = element_count(first);
  bool equal_shapes = true;
  std::vector<Expr> sizes;
  for (Val item : items) {
    const Shape& shape = n.shape(item);
    if (n.dtype(item) != n.dtype(items[0]) || shape.size() != first.size()) {
      n.fail("a position computed from the data in a sequence of tensors of different ranks or types", "make the position a constant");
      return {};
    }
    equal_shapes &= equal(shape, first);
    for (size_t axis = 0; axis < shape.size(); ++axis) most[axis] = n.simplified(max(most[axis], shape[axis]));
    room = n.simplified(max(room, element_count(shape)));
    sizes.insert(sizes.end(), shape.begin(), shape.end());
  }
  std::vector<Val> rows;
  for (Val item : items) rows.push_back(flat_row(n, item, room));
  const Val all = rows.size() == 1 ? rows[0] : n.emit(op::Concat{0}, std::move(rows));
  const Val row = n.emit(op::Gather{0}, {all, index});
  if (equal_shapes) return n.reshape(row, first);
  const auto count = static_cast<int64_t>(items.size()), rank = static_cast<int64_t>(first.size());
  const Val size = n.emit(op::Gather{0}, {n.builder().known(std::move(sizes), DType::i64, {Expr(count), Expr(rank)}), index});
  Shape shape;
  for (int64_t axis = 0; axis < rank; ++axis) shape.push_back(n.symbol_of(size, axis, most[static_cast<size_t>(axis)]));
  return n.failed() ? Val{} : n.reshape(n.slice(row, 0, 0, element_count(shape)), shape);
}

// before, at or behind, as `at`, a position, lies behind i, is i, or lies before it.
Val placed(NodeImport& n, int64_t i, Val at, Val before, Val here, Val behind) {
  const auto number = [&](int64_t value) { return n.scalar(static_cast<double>(value), DType::i64); };
  if (n.failed()) return {};
  const Val index = n.select(n.less(number(i), at), number(0), n.select(n.less(at, number(i)), number(2), number(1)));
  return gathered(n, {before, here, behind}, index);
}

}  // namespace

void import_sequence_empty(NodeImport& n, int) { n.set(n.sequence({})); }

void import_sequence_construct(NodeImport& n, int) {
  std::vector<Val> items;
  for (size_t i = 0; i < n.input_count(); ++i) {
    items.push_back(n.in(i));
    if (n.is_list(items.back(), NodeImport::ListKind::sequence) || n.is_list(items.back(), NodeImport::ListKind::optional))
      return n.invalid(llvm::formatv("input {0} is not a tensor", i).str());
  }
  n.set(n.sequence(std::move(items)));
}

void import_sequence_at(NodeImport& n, int) {
  const std::vector<Val>& items = n.items(0);
  if (n.failed()) return;
  if (items.empty()) return n.invalid("the sequence is empty");
  const auto count = static_cast<int64_t>(items.size());
  if (!n.known(n.in(1))) return n.set(gathered(n, items, position_value(n, 1, count)));
  n.set(items[static_cast<size_t>(position(n, 1, count, count))]);
}

void import_sequence_insert(NodeImport& n, int) {
  std::vector<Val> items = n.items(0);
  const auto count = static_cast<int64_t>(items.size());
  if (n.has(2) && !n.failed() && !n.known(n.in(2))) {
    const Val at = position_value(n, 2, count), added = n.in(1);
    std::vector<Val> moved;
    for (int64_t i = 0; i <= count; ++i)
      moved.push_back(placed(n, i, at, i < count ? items[static_cast<size_t>(i)] : added, added, i > 0 ? items[static_cast<size_t>(i - 1)] : added));
    return n.failed() ? void() : n.set(n.sequence(std::move(moved)));
  }
  const int64_t at = n.has(2) ? position(n, 2, count, count + 1) : count;
  if (n.failed()) return;
  items.insert(items.begin() + at, n.in(1));
  n.set(n.sequence(std::move(items)));
}

void import_sequence_erase(NodeImport& n, int) {
  std::vector<Val> items = n.items(0);
  if (!n.failed() && items.empty()) return n.invalid("the sequence is empty");
  const auto count = static_cast<int64_t>(items.size());
  if (n.has(1) && !n.failed() && !n.known(n.in(1))) {
    const Val at = position_value(n, 1, count);
    std::vector<Val> left;
    for (int64_t i = 0; i + 1 < count; ++i) left.push_back(placed(n, i, at, items[static_cast<size_t>(i)], items[static_cast<size_t>(i + 1)], items[static_cast<size_t>(i + 1)]));
    return n.failed() ? void() : n.set(n.sequence(std::move(left)));
  }
  const int64_t at = n.has(1) ? position(n, 1, count, count) : count - 1;
  if (n.failed()) return;
  items.erase(items.begin() + at);
  n.set(n.sequence(std::move(items)));
}

void import_sequence_length(NodeImport& n, int) {
  const auto count = static_cast<int64_t>(n.items(0).size());
  n.set(n.builder().known({Expr(count)}, DType::i64, {}));
}

namespace {

// Extents of the parts of a split. Of equal parts the number must be known, of given ones only how many there are.
std::vector<Expr> part_sizes(NodeImport& n, const Expr& extent, int64_t axis) {
  std::vector<Expr> sizes;
  if (n.has(1) && n.rank(n.in(1)) > 0) {
    sizes = n.dims(n.in(1), "the split");
  } else {
    const Ints given = n.has(1) ? n.constants(n.in(1), "the split") : Ints{1};
    const int64_t whole = n.need_static_dim(n.in(0), axis, "a split into a sequence");
    if (n.failed()) return {};
    if (given.size() != 1 || given[0] < 1) n.invalid("the split is not a positive number");
    else if (whole / given[0] >= kMaxParts) n.fail(llvm::formatv("more than {0} parts", kMaxParts).str());
    for (int64_t left = whole; left > 0 && !n.failed(); left -= given[0]) sizes.emplace_back(std::min(left, given[0]));
  }
  Expr all = 0;
  for (const Expr& size : sizes) {
    if (as_const(size).value_or(0) < 0) n.invalid("a part of a negative size");
    all = n.simplified(all + size);
  }
  const std::optional<int64_t> off = as_const(n.simplified(all - extent));
  if (off && *off != 0) n.invalid(llvm::formatv("parts of {0} in all for an extent of {1}", to_string(all), to_string(extent)).str());
  return n.failed() ? std::vector<Expr>() : sizes;
}

}  // namespace

void import_split_to_sequence(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(x));
  const bool keep = n.integer("keepdims", 1) != 0 || n.has(1);
  std::vector<Val> items;
  Expr start = 0;
  for (const Expr& size : part_sizes(n, n.dim(x, axis), axis)) {
    Val part = n.slice(x, axis, start, size);
    if (n.failed()) return;
    if (!keep) {
      Shape shape = n.shape(part);
      shape.erase(shape.begin() + axis);
      part = n.reshape(part, std::move(shape));
    }
    items.push_back(part);
    start = n.simplified(start + size);
  }
  if (!n.failed()) n.set(n.sequence(std::move(items)));
}

void import_concat_from_sequence(NodeImport& n, int) {
  std::vector<Val> items = n.items(0);
  if (!n.failed() && items.empty()) return n.invalid("the sequence is empty");
  if (n.failed()) return;
  const bool fresh = n.integer("new_axis", 0) != 0;
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(items[0]) + (fresh ? 1 : 0));
  for (Val& item : items) {
    if (!fresh || n.failed()) continue;
    if (n.rank(item) < axis) return n.invalid("items of different ranks");
    Shape shape = n.shape(item);
    shape.insert(shape.begin() + axis, Expr(1));
    item = n.reshape(item, std::move(shape));
  }
  n.set(items.size() == 1 ? items[0] : n.emit(op::Concat{axis}, std::move(items)));
}

void import_optional(NodeImport& n, int) {
  n.set(n.builder().list(NodeImport::ListKind::optional, n.has(0) ? std::vector<Val>{n.in(0)} : std::vector<Val>()));
}

void import_optional_has_element(NodeImport& n, int) {
  const bool empty = !n.has(0) || (n.is_list(n.in(0), NodeImport::ListKind::optional) && n.builder().items(n.in(0)).empty());
  n.set(n.builder().known({Expr(empty ? 0 : 1)}, DType::boolean, {}));
}

void import_optional_get_element(NodeImport& n, int) {
  const Val x = n.in(0);
  if (n.failed() || !n.is_list(x, NodeImport::ListKind::optional)) return n.set(x);
  if (n.builder().items(x).empty()) return n.fail("an element of an optional that is empty");
  n.set(n.builder().items(x)[0]);
}

}  // namespace tw::onnx_import
