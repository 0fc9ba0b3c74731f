// Importers of sequences and optionals: lists of values that exist only during import. If only the
// run knows how many tensors they hold: frontend/onnx/run_list.h.
#include <algorithm>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"
#include "frontend/onnx/run_list.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxParts = 4096;  // limit of parts that one tensor is split into

// Input i as a position below `end` in a sequence of `count` items; a negative one counts from the
// end. If it is none: a failure, and 0.
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

// Input i as a position in a sequence of `count` items, from its beginning: an i64 scalar. Invalid
// if the input is absent.
Val position_value(NodeImport& n, size_t i, const Expr& count) {
  return n.has(i) ? place_of(n, n.element_value(n.in(i), 0), count, "position") : Val{};
}

// As position_value, but `count` is a position too: the end.
Val position_to_insert(NodeImport& n, size_t i, const Expr& count) {
  if (!n.has(i) || n.failed()) return {};
  const Val given = n.within(n.element_value(n.in(i), 0), Expr(0) - count, count, "position");
  if (n.failed()) return {};
  return n.select(n.less(given, n.scalar(0, DType::i64)), n.add(given, n.dim_value(count)), given);
}

// `before` if position `at` is greater than i, `here` if it is i, `behind` if it is less.
Val placed(NodeImport& n, int64_t i, Val at, Val before, Val here, Val behind) {
  const auto number = [&](int64_t value) {
    return n.scalar(static_cast<double>(value), DType::i64);
  };
  if (n.failed()) return {};
  const Val index = n.select(n.less(number(i), at), number(0),
                             n.select(n.less(at, number(i)), number(2), number(1)));
  return item_at(n, run_list(n, std::vector{before, here, behind}), index);
}

bool of_run(NodeImport& n, size_t i) { return n.is_list(n.in(i), NodeImport::ListKind::rows); }

}  // namespace

void import_sequence_empty(NodeImport& n) { n.set(n.sequence({})); }

void import_sequence_construct(NodeImport& n) {
  std::vector<Val> items;
  for (size_t i = 0; i < n.input_count(); ++i) {
    items.push_back(n.in(i));
    if (n.builder().list_kind(items.back()))
      return n.invalid(llvm::formatv("input {0} is not a tensor", i).str());
  }
  n.set(n.sequence(std::move(items)));
}

void import_sequence_at(NodeImport& n) {
  if (of_run(n, 0)) {
    const RunList list = run_list(n, n.in(0));
    return n.set(item_at(n, list, position_value(n, 1, length(n, list))));
  }
  const std::vector<Val>& items = n.items(0);
  if (n.failed()) return;
  if (items.empty()) return n.invalid("the sequence is empty");
  const auto count = static_cast<int64_t>(items.size());
  if (!n.known(n.in(1))) return n.set(item_at(n, run_list(n, items), position_value(n, 1, count)));
  n.set(items[static_cast<size_t>(position(n, 1, count, count))]);
}

void import_sequence_insert(NodeImport& n) {
  if (of_run(n, 0)) {
    const RunList list = run_list(n, n.in(0));
    return n.set(
        as_value(n, inserted(n, list, position_to_insert(n, 2, length(n, list)), n.in(1))));
  }
  if (n.is_list(n.in(0), NodeImport::ListKind::growing)) {
    if (n.has(2))
      return n.fail("a position in a sequence that the loop itself makes longer",
                    "leave it out: the item goes behind the last one");
    std::vector<Val> items = n.builder().items(n.in(0));
    items.push_back(n.in(1));
    return n.failed() ? void()
                      : n.set(n.builder().list(NodeImport::ListKind::growing, std::move(items)));
  }
  std::vector<Val> items = n.items(0);
  const auto count = static_cast<int64_t>(items.size());
  if (n.has(2) && !n.failed() && !n.known(n.in(2))) {
    const Val at = position_to_insert(n, 2, count), added = n.in(1);
    std::vector<Val> moved;
    for (int64_t i = 0; i <= count; ++i)
      moved.push_back(placed(n, i, at, i < count ? items[static_cast<size_t>(i)] : added, added,
                             i > 0 ? items[static_cast<size_t>(i - 1)] : added));
    return n.failed() ? void() : n.set(n.sequence(std::move(moved)));
  }
  const int64_t at = n.has(2) ? position(n, 2, count, count + 1) : count;
  if (n.failed()) return;
  items.insert(items.begin() + at, n.in(1));
  n.set(n.sequence(std::move(items)));
}

void import_sequence_erase(NodeImport& n) {
  if (of_run(n, 0)) {
    const RunList list = run_list(n, n.in(0));
    return n.set(as_value(n, erased(n, list, position_value(n, 1, length(n, list)))));
  }
  std::vector<Val> items = n.items(0);
  if (!n.failed() && items.empty()) return n.invalid("the sequence is empty");
  const auto count = static_cast<int64_t>(items.size());
  if (n.has(1) && !n.failed() && !n.known(n.in(1))) {
    const Val at = position_value(n, 1, count);
    std::vector<Val> left;
    for (int64_t i = 0; i + 1 < count; ++i)
      left.push_back(placed(n, i, at, items[static_cast<size_t>(i)],
                            items[static_cast<size_t>(i + 1)], items[static_cast<size_t>(i + 1)]));
    return n.failed() ? void() : n.set(n.sequence(std::move(left)));
  }
  const int64_t at = n.has(1) ? position(n, 1, count, count) : count - 1;
  if (n.failed()) return;
  items.erase(items.begin() + at);
  n.set(n.sequence(std::move(items)));
}

void import_sequence_length(NodeImport& n) {
  const Expr count = of_run(n, 0) ? length(n, run_list(n, n.in(0)))
                                  : Expr(static_cast<int64_t>(n.items(0).size()));
  n.set(n.dim_value(count));
}

namespace {

// The extents of the parts of a split. For equal parts, the extent and the size must be known; for
// given parts, only their number.
std::vector<Expr> part_sizes(NodeImport& n, const Expr& extent, int64_t axis) {
  std::vector<Expr> sizes;
  if (n.has(1) && n.rank(n.in(1)) > 0) {
    sizes = n.dims(n.in(1), "the split");
  } else {
    const Ints given = n.has(1) ? n.constants(n.in(1), "the split") : Ints{1};
    const int64_t whole = n.need_static_dim(n.in(0), axis, "a split into a sequence");
    if (n.failed()) return {};
    if (given.size() != 1 || given[0] < 1) n.invalid("the split is not a positive number");
    else if (whole / given[0] >= kMaxParts)
      n.fail(llvm::formatv("more than {0} parts", kMaxParts).str());
    for (int64_t left = whole; left > 0 && !n.failed(); left -= given[0])
      sizes.emplace_back(std::min(left, given[0]));
  }
  Expr all = 0;
  for (const Expr& size : sizes) {
    if (as_const(size).value_or(0) < 0) n.invalid("a part of a negative size");
    all = n.simplified(all + size);
  }
  const std::optional<int64_t> off = as_const(n.simplified(all - extent));
  if (off && *off != 0)
    n.invalid(
        llvm::formatv("parts of {0} in all for an extent of {1}", to_string(all), to_string(extent))
            .str());
  return n.failed() ? std::vector<Expr>() : sizes;
}

// Parts of equal size, which data decide; the last one may be shorter.
RunList equal_parts(NodeImport& n, Val x, int64_t axis) {
  const Expr extent = n.dim(x, axis);
  const Val given = n.element_value(n.in(1), 0), one = n.scalar(1, DType::i64),
            whole = n.dim_value(extent);
  const Val wide = n.max(n.min(given, whole), one);
  const Val ceiling = n.div(n.sub(n.add(whole, wide), one), wide);
  // A count of -1 ends the run if the size is 0 or less.
  const Expr count = n.symbol_of(n.select(n.less(given, one), n.scalar(-1, DType::i64), ceiling), 0,
                                 extent),
             width = n.symbol_of(wide, 0, max(extent, Expr(1)));
  if (n.failed()) return {};
  Shape shape = n.shape(x), ends(shape.size(), Expr(0));
  const auto at = static_cast<size_t>(axis);
  ends[at] = n.simplified(max(count * width - extent, Expr(0)));
  const Val all = n.emit(op::Pad{PadMode::constant, Shape(shape.size(), Expr(0)), ends}, {x});
  const Val cut = n.slice(all, axis, 0, count * width);
  shape[at] = width;
  Shape split = shape;
  split.insert(split.begin() + axis, count);
  Ints order;
  for (int64_t a = 0; a <= n.rank(x); ++a)
    if (a != axis) order.push_back(a);
  order.insert(order.begin(), axis);
  const Val rows = n.transpose(n.reshape(cut, split), order);
  // Sizes are those of the rows, except the last one's along the axis.
  const Val part = n.iota({count}, 0), start = n.mul(part, wide);
  std::vector<Val> columns;
  for (size_t a = 0; a < shape.size() && !n.failed(); ++a) {
    const Val size = a == at ? n.min(wide, n.sub(whole, start))
                             : n.expand(n.dim_value(shape[a]), {count});
    columns.push_back(n.reshape(size, {count, Expr(1)}));
  }
  if (n.failed()) return {};
  return {rows, columns.size() == 1 ? columns[0] : n.emit(op::Concat{1}, columns), n.rank(x)};
}

}  // namespace

void import_split_to_sequence(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(x));
  if (n.has(1) && n.rank(n.in(1)) == 0 && !n.failed() && !n.known(n.in(1)))
    return n.set(as_value(n, equal_parts(n, x, axis)));
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

void import_concat_from_sequence(NodeImport& n) {
  if (of_run(n, 0)) {
    const RunList list = run_list(n, n.in(0));
    const bool fresh = n.integer("new_axis", 0) != 0;
    return n.set(concatenated(
        n, list, n.axis(n.integer("axis", 0), n.rank(list.rows) - (fresh ? 0 : 1)), fresh));
  }
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

void import_optional(NodeImport& n) {
  n.set(n.builder().list(NodeImport::ListKind::optional,
                         n.has(0) ? std::vector<Val>{n.in(0)} : std::vector<Val>()));
}

void import_optional_has_element(NodeImport& n) {
  const Val x = n.maybe(0);
  if (n.is_list(x, NodeImport::ListKind::maybe)) return n.set(n.builder().items(x)[0]);
  const bool empty = !x.valid() ||
                     (n.is_list(x, NodeImport::ListKind::optional) && n.builder().items(x).empty());
  n.set(n.builder().known({Expr(empty ? 0 : 1)}, DType::boolean, {}));
}

// If only the run knows whether the optional has a value: the value, or its placeholder.
void import_optional_get_element(NodeImport& n) {
  const Val x = n.in(0);
  if (n.is_list(x, NodeImport::ListKind::maybe)) return n.set(n.builder().items(x)[1]);
  if (n.failed() || !n.is_list(x, NodeImport::ListKind::optional)) return n.set(x);
  if (n.builder().items(x).empty()) return n.fail("an element of an optional that is empty");
  n.set(n.builder().items(x)[0]);
}

}  // namespace tw::onnx_import
