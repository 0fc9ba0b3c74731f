// Sequences and optionals: lists of values that exist while importing only, so that every position must be known there.
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

bool same_type(NodeImport& n, Val a, Val b) { return equal(n.type(a), n.type(b)); }

// One of equal tensors, by a position that is computed from the data.
Val gathered(NodeImport& n, const std::vector<Val>& items, Val index) {
  std::vector<Val> rows;
  for (Val item : items) {
    if (!same_type(n, item, items[0])) {
      n.fail("a position computed from the data in a sequence of different shapes", "make the position a constant");
      return {};
    }
    Shape row = n.shape(item);
    row.insert(row.begin(), Expr(1));
    rows.push_back(n.reshape(item, std::move(row)));
  }
  const Val all = rows.size() == 1 ? rows[0] : n.emit(op::Concat{0}, std::move(rows));
  return n.emit(op::Gather{0}, {all, n.reshape(index, {})});
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
  if (!n.known(n.in(1))) return n.set(gathered(n, items, n.in(1)));
  const auto count = static_cast<int64_t>(items.size());
  n.set(items[static_cast<size_t>(position(n, 1, count, count))]);
}

void import_sequence_insert(NodeImport& n, int) {
  std::vector<Val> items = n.items(0);
  const auto count = static_cast<int64_t>(items.size());
  const int64_t at = n.has(2) ? position(n, 2, count, count + 1) : count;
  if (n.failed()) return;
  items.insert(items.begin() + at, n.in(1));
  n.set(n.sequence(std::move(items)));
}

void import_sequence_erase(NodeImport& n, int) {
  std::vector<Val> items = n.items(0);
  if (!n.failed() && items.empty()) return n.invalid("the sequence is empty");
  const auto count = static_cast<int64_t>(items.size());
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
