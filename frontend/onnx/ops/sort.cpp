// Importers of operators that sort and select: functions of the runtime library.
#include <algorithm>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"
#include "ir/graph/externs.h"
#include "ir/size_ends.h"

namespace tw::onnx_import {
namespace {

// The axis attribute; -1 if it is absent, which the functions read as the flat tensor.
int64_t axis_or_flat(NodeImport& n, Val x) {
  return n.has_attribute("axis") ? n.axis(n.integer("axis", 0), n.rank(x)) : -1;
}

// Unifies the free extent of a list input with 1; a scalar stays.
void one_element(NodeImport& n, size_t input) {
  if (n.has(input) && n.rank(n.in(input)) == 1) n.unify(n.dim(n.in(input), 0), 1);
}

// The first `number` entries along an axis whose extent is the capacity.
Val taken(NodeImport& n, Val all, int64_t axis, Val number) {
  return n.failed() ? Val{} : n.slice(all, axis, 0, n.symbol_of(number, 0, n.dim(all, axis)));
}

}  // namespace

// k is an attribute before version 10, later an input.
void import_topk(NodeImport& n) {
  const Val x = n.in(0);
  if (n.failed()) return;
  if (n.rank(x) == 0) return n.invalid("TopK of a scalar");
  const int64_t axis = n.axis(n.integer("axis", -1), n.rank(x));
  Shape k = {Expr(n.integer("k", 0))};
  if (n.version() >= 10) one_element(n, 1);
  if (n.version() >= 10 && n.length(n.in(1), "k").value_or(1) != 1)
    return n.invalid("k must have one element");
  if (n.version() >= 10) k = {n.symbol_of(n.in(1), 0, n.dim(x, axis))};
  if (n.failed()) return;
  const std::vector<Val> made = n.emit_extern(
      ExternFunction::topk, {axis, n.integer("largest", 1) != 0, n.integer("sorted", 1) != 0}, {},
      {x}, k);
  n.set(0, made[0]);
  n.set(1, made[1]);
}

void import_unique(NodeImport& n) {
  const Val x = n.in(0);
  if (n.failed()) return;
  const int64_t axis = axis_or_flat(n, x);
  const std::vector<Val> made = n.emit_extern(ExternFunction::unique,
                                              {axis, n.integer("sorted", 1) != 0}, {}, {x});
  const Val number = made[4];
  n.set(0, taken(n, made[0], std::max<int64_t>(axis, 0), number));
  if (n.wanted(1)) n.set(1, taken(n, made[1], 0, number));
  n.set(2, made[2]);
  if (n.wanted(3)) n.set(3, taken(n, made[3], 0, number));
}

void import_nonzero(NodeImport& n) {
  const std::vector<Val> made = n.emit_extern(ExternFunction::nonzero, {}, {}, {n.in(0)});
  n.set(taken(n, made[0], 1, made[1]));
}

void import_compress(NodeImport& n) {
  const Val x = n.in(0), condition = n.in(1);
  if (n.failed()) return;
  const int64_t axis = axis_or_flat(n, x);
  const std::vector<Val> made = n.emit_extern(ExternFunction::compress, {axis}, {}, {x, condition});
  n.set(taken(n, made[0], std::max<int64_t>(axis, 0), made[1]));
}

// A class has at most as many selected boxes as there are boxes, or as the third input says if it
// is known. Exporters write the largest integer for "all".
void import_non_max_suppression(NodeImport& n) {
  const Val boxes = n.in(0), scores = n.in(1);
  if (n.failed()) return;
  if (n.rank(boxes) != 3 || n.rank(scores) != 3)
    return n.invalid("boxes and scores have three axes");
  for (size_t i = 2; i < 5; ++i) one_element(n, i);
  n.unify(n.dim(boxes, 2), 4);
  n.unify(n.dim(scores, 0), n.dim(boxes, 0));
  n.unify(n.dim(scores, 2), n.dim(boxes, 1));
  Expr most = n.dim(boxes, 1);
  if (!n.has(2)) most = 0;
  else if (const auto given = n.known(n.in(2)); given && given->size() == 1)
    if (const auto limit = as_const(given->front()); limit && *limit <= kMostExtent)
      most = min(most, Expr(std::max<int64_t>(*limit, 0)));
  const Expr rows = n.simplified(n.dim(scores, 0) * n.dim(scores, 1) * most);
  const std::vector<Val> made = n.emit_extern(
      ExternFunction::non_max_suppression, {n.integer("center_point_box", 0)}, {},
      {boxes, scores, n.maybe(2), n.maybe(3), n.maybe(4)}, {rows});
  n.set(taken(n, made[0], 0, made[1]));
}

}  // namespace tw::onnx_import
