#include "ir/graph/index_checks.h"

#include <llvm/Support/FormatVariadic.h>

#include <algorithm>

#include "ir/graph/externs.h"
#include "ir/graph/queries.h"

namespace tw {
namespace {

constexpr int kDepth = 16;  // most nodes in a row that bounds_of follows

// Bounds of a value's elements, in symbols; nullopt: unknown
std::optional<Interval> bounds_of(const Graph& graph, ValueId value, int depth = kDepth);

std::optional<Interval> bounds_of_all(const Graph& graph, const std::vector<ValueId>& values,
                                      size_t first, int depth) {
  std::optional<Interval> all;
  for (size_t i = first; i < values.size(); ++i) {
    const auto own = bounds_of(graph, values[i], depth);
    if (!own) return std::nullopt;
    all = all ? Interval{simplify_dim(min(all->min, own->min)),
                         simplify_dim(max(all->max, own->max))}
              : *own;
  }
  return all;
}

// True: sums of two such ends do not leave the type. Extents are at most 2^40.
bool fits(const Interval& interval, DType type) {
  const Expr both[] = {interval.min, interval.max};
  for (const Expr& end : both) {
    Ranges symbols = symbol_ranges(end);
    for (auto& [symbol, range] : symbols)
      if (!range.max.defined()) range.max = Expr(int64_t{1} << 40);
    const Bounds bounds = constant_bounds(end, symbols);
    const int64_t least = type == DType::i32 ? INT32_MIN : INT64_MIN / 2,
                  most = type == DType::i32 ? INT32_MAX : INT64_MAX / 2;
    if (!bounds.min || !bounds.max || *bounds.min < least || *bounds.max > most) return false;
  }
  return true;
}

std::optional<Interval> bounds_of_binary(const Graph& graph, const Node& node, BinaryOp function,
                                         int depth) {
  const auto a = bounds_of(graph, node.inputs[0], depth),
             b = bounds_of(graph, node.inputs[1], depth);
  if (!a || !b) return std::nullopt;
  const DType type = graph.value(node.output).type.dtype;
  const auto made = [&](const Expr& low, const Expr& high) {
    return Interval{simplify_dim(low), simplify_dim(high)};
  };
  if (!fits(*a, type) || !fits(*b, type)) return std::nullopt;
  const auto sum = [&](const Interval& ends) {
    return fits(ends, type) ? std::optional(ends) : std::nullopt;
  };
  switch (function) {
    case BinaryOp::add: return sum(made(a->min + b->min, a->max + b->max));
    case BinaryOp::sub: return sum(made(a->min - b->max, a->max - b->min));
    case BinaryOp::min: return made(min(a->min, b->min), min(a->max, b->max));
    case BinaryOp::max: return made(max(a->min, b->min), max(a->max, b->max));
    default: return std::nullopt;
  }
}

std::optional<Interval> bounds_of_constant(const Graph& graph, ValueId value) {
  const auto found = extremes(graph.value(value).type, graph.value(value).constant->bytes);
  return found ? std::optional(Interval{Expr(found->least), Expr(found->most)}) : std::nullopt;
}

Interval places(const Expr& extent) {
  return {Expr(0), simplify_dim(max(extent - Expr(1), Expr(0)))};
}

std::optional<Interval> bounds_of(const Graph& graph, ValueId value, int depth) {
  if (graph.is_constant(value)) return bounds_of_constant(graph, value);
  const Node* node = graph.def(value);
  if (!node || depth == 0) return std::nullopt;
  const auto shape = [&](size_t input) -> const Shape& {
    return graph.value(node->inputs[input]).type.shape;
  };
  if (const auto* a = get_if<op::Iota>(node)) return places(a->shape[static_cast<size_t>(a->axis)]);
  if (const auto* a = get_if<op::ArgReduce>(node))
    return places(shape(0)[static_cast<size_t>(a->axis)]);
  if (const auto* a = get_if<op::Within>(node); a && !a->range.empty())
    return Interval{a->range[0], a->range[1]};
  if (const auto* a = get_if<op::Binary>(node))
    return bounds_of_binary(graph, *node, a->function, depth - 1);
  if (get_if<op::Select>(node)) return bounds_of_all(graph, node->inputs, 1, depth - 1);
  if (get_if<op::Concat>(node)) return bounds_of_all(graph, node->inputs, 0, depth - 1);
  if (const auto* a = get_if<op::Cast>(node);
      a && dtype_bytes(a->to) >= dtype_bytes(graph.value(node->inputs[0]).type.dtype) &&
      is_signed_int(graph.value(node->inputs[0]).type.dtype))
    return bounds_of(graph, node->inputs[0], depth - 1);
  if (get_if<op::Reshape>(node) || get_if<op::Transpose>(node) || get_if<op::Expand>(node) ||
      get_if<op::Slice>(node) || get_if<op::Gather>(node))
    return bounds_of(graph, node->inputs[0], depth - 1);
  if (const auto* a = get_if<op::Extern>(node);
      a && a->function == ExternFunction::topk && value == node->extra[0])
    return places(shape(0)[static_cast<size_t>(a->ints[0])]);
  return std::nullopt;
}

// The value that first held these elements. Widening casts and operators that only move elements
// are passed through.
ValueId source_of(const Graph& graph, ValueId value) {
  for (const Node* node = graph.def(value); node; node = graph.def(value)) {
    const auto* cast = get_if<op::Cast>(node);
    const bool widens = cast && cast->to == DType::i64 &&
                        graph.value(node->inputs[0]).type.dtype == DType::i32;
    if (!widens && !get_if<op::Reshape>(node) && !get_if<op::Transpose>(node) &&
        !get_if<op::Expand>(node))
      break;
    value = node->inputs[0];
  }
  return value;
}

// All checks of a node, whether a proof makes them needless or not
std::vector<IndexCheck> checks_of(const Graph& graph, const Node& node) {
  if (const auto* within = get_if<op::Within>(&node))
    return {{source_of(graph, node.inputs[0]),
             within->range.empty() ? Interval{} : Interval{within->range[0], within->range[1]},
             within->what}};
  // The function checks its indices itself
  if (std::holds_alternative<op::Extern>(node.attrs)) return {};
  std::vector<const TensorType*> types;
  for (ValueId input : node.inputs)
    types.push_back(input.valid() ? &graph.value(input).type : nullptr);
  std::vector<IndexCheck> list;
  for (const IndexInput& at : index_inputs(node.attrs, types)) {
    const Expr& extent = types[0]->shape[at.axis];
    list.push_back({source_of(graph, node.inputs[at.input]),
                    {simplify_dim(Expr(0) - extent), simplify_dim(extent - Expr(1))},
                    "index"});
  }
  return list;
}

Expr lies_in(const Interval& elements, const Interval& range) {
  return logical_and(le(range.min, elements.min), le(elements.max, range.max));
}

}  // namespace

std::vector<IndexCheck> open_indices(const Graph& graph, const Node& node) {
  std::vector<IndexCheck> list;
  for (IndexCheck& check : checks_of(graph, node)) {
    if (graph.is_constant(check.source) || get_if<op::DimVector>(graph.def(check.source))) continue;
    const auto bounds = check.range.min.defined() ? bounds_of(graph, check.source) : std::nullopt;
    if (bounds) {
      const Expr inside = lies_in(*bounds, check.range);
      if (can_prove(inside, symbol_ranges(inside))) continue;
    }
    list.push_back(std::move(check));
  }
  return list;
}

std::vector<IndexCondition> index_conditions(const Graph& graph, const Node& node) {
  std::vector<IndexCondition> out;
  for (const IndexCheck& check : checks_of(graph, node)) {
    if (!check.range.min.defined()) continue;
    const auto add = [&](const Expr& index) {
      out.push_back({lies_in({index, index}, check.range),
                     llvm::formatv("{0} {1}, expected {2} to {3}", check.what, to_string(index),
                                   to_string(check.range.min), to_string(check.range.max))
                         .str()});
    };
    if (graph.is_constant(check.source)) {
      const auto found = bounds_of_constant(graph, check.source);
      if (found) add(found->min), add(found->max);
    } else if (const auto* dims = get_if<op::DimVector>(graph.def(check.source))) {
      for (const Expr& value : dims->values) add(value);
    }
  }
  return out;
}

}  // namespace tw
