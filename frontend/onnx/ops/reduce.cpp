// Reductions: the five of the core, others as something before and after a sum.
#include <numeric>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// Axes from the attribute (older versions) or the input; none: all, or, with noop_with_empty_axes, none at all.
Ints reduce_axes(NodeImport& n, Val x) {
  Ints given = n.integers("axes").value_or(Ints());
  if (n.has(1)) given = n.constants(n.in(1), "the list of axes");
  if (given.empty() && n.integer("noop_with_empty_axes", 0) == 0) {
    given.resize(static_cast<size_t>(n.rank(x)));
    std::iota(given.begin(), given.end(), 0);
  }
  return n.axes(given, n.rank(x));
}

// max + log(sum(exp(x - max))); an infinite max counts as 0
Val log_sum_exp(NodeImport& n, Val x, const Ints& axes, bool keep) {
  Val top = n.reduce(ReduceKind::max, x, axes, true);
  top = n.select(n.unary(UnaryOp::is_inf, top), n.scalar(0, x), top);
  const Val sum = n.reduce(ReduceKind::sum, n.unary(UnaryOp::exp, n.sub(x, top)), axes, keep);
  return n.add(n.unary(UnaryOp::log, sum), keep ? top : n.reshape(top, n.shape(sum)));
}

}  // namespace

void import_reduce(NodeImport& n, int kind) {
  const Val x = n.in(0);
  const Ints axes = reduce_axes(n, x);
  const bool keep = n.integer("keepdims", 1) != 0;
  if (n.failed()) return;
  if (n.dtype(x) == DType::boolean)
    return n.set(n.cast(n.reduce(static_cast<ReduceKind>(kind), n.cast(x, DType::u8), axes, keep), DType::boolean));
  n.set(n.reduce(static_cast<ReduceKind>(kind), x, axes, keep));
}

void import_reduce_composed(NodeImport& n, int which) {
  const Val x = n.in(0);
  const Ints axes = reduce_axes(n, x);
  const bool keep = n.integer("keepdims", 1) != 0;
  if (n.failed()) return;
  const auto sum = [&](Val v) { return n.reduce(ReduceKind::sum, v, axes, keep); };
  switch (static_cast<ComposedReduce>(which)) {
    case ComposedReduce::l1: return n.set(sum(n.unary(UnaryOp::abs, x)));
    case ComposedReduce::l2: return n.set(n.unary(UnaryOp::sqrt, sum(n.mul(x, x))));
    case ComposedReduce::log_sum: return n.set(n.unary(UnaryOp::log, sum(x)));
    case ComposedReduce::log_sum_exp: return n.set(log_sum_exp(n, x, axes, keep));
    case ComposedReduce::sum_square: return n.set(sum(n.mul(x, x)));
  }
}

void import_arg_reduce(NodeImport& n, int smallest) {
  const Val x = n.in(0);
  op::ArgReduce a;
  a.smallest = smallest != 0;
  a.axis = n.axis(n.integer("axis", 0), n.rank(x));
  a.keep = n.integer("keepdims", 1) != 0;
  a.last = n.integer("select_last_index", 0) != 0;
  n.set(n.emit(a, {x}));
}

}  // namespace tw::onnx_import
