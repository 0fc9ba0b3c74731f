// Importers of reductions: the five of the core, and others as operators before and after a sum.
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {
namespace {

// The axes of a reduction: known ones, or flags of axes that only the run knows.
class ReduceAxes {
 public:
  // Reads the attribute (older versions) or the input. No axes mean all axes or, with
  // noop_with_empty_axes, none.
  ReduceAxes(NodeImport& n, Val x) : n_(n), keep_(n.integer("keepdims", 1) != 0) {
    const Val input = n.maybe(1);
    const auto count = input.valid() && n.rank(input) == 1 ? n.static_dim(input, 0) : std::nullopt;
    if (count.value_or(0) > 0 && !n.known(input)) {
      flags_ = axis_flags(n, input, n.rank(x));
      listed_ = *count;
      return;
    }
    Ints given = n.integers("axes").value_or(Ints());
    if (input.valid() && count != 0) given = n.constants(input, "the list of axes");
    if (given.empty() && n.integer("noop_with_empty_axes", 0) == 0) given = all_axes(n.rank(x));
    known_ = n.axes(given, n.rank(x));
  }

  Val apply(ReduceKind kind, Val x) const { return apply(kind, x, keep_); }
  // As apply(), but keeps the reduced axes with extent 1.
  Val kept(ReduceKind kind, Val x) const { return apply(kind, x, true); }
  // Expands a result of kept() over the points of `like`.
  Val stretched(Val v, Val like) const {
    return flags_.valid() ? onnx_import::stretched(n_, v, n_.shape(like)) : v;
  }

 private:
  Val apply(ReduceKind kind, Val x, bool keep) const {
    return flags_.valid() ? reduce_flagged(n_, kind, x, flags_, listed_, keep)
                          : n_.reduce(kind, x, known_, keep);
  }

  NodeImport& n_;
  Ints known_;
  Val flags_;
  int64_t listed_ = 0;
  bool keep_;
};

// max + log(sum(exp(x - max))), where an infinite max counts as 0
Val log_sum_exp(NodeImport& n, Val x, const ReduceAxes& axes) {
  Val top = axes.kept(ReduceKind::max, x);
  top = n.select(n.unary(UnaryOp::is_inf, top), n.scalar(0, x), top);
  const Val sum = axes.apply(ReduceKind::sum,
                             n.unary(UnaryOp::exp, n.sub(x, axes.stretched(top, x))));
  return n.add(n.unary(UnaryOp::log, sum), n.reshape(top, n.shape(sum)));
}

}  // namespace

void import_reduce(NodeImport& n, ReduceKind kind) {
  const Val x = n.in(0);
  const ReduceAxes axes(n, x);
  if (n.failed()) return;
  if (n.dtype(x) == DType::boolean)
    return n.set(n.cast(axes.apply(kind, n.cast(x, DType::u8)), DType::boolean));
  n.set(axes.apply(kind, x));
}

// Computes roots and logarithms of integers in f64, and truncates them.
void import_reduce_composed(NodeImport& n, ComposedReduce which) {
  const Val x = n.in(0);
  const ReduceAxes axes(n, x);
  if (n.failed()) return;
  const DType type = n.dtype(x), real = is_float(type) ? type : DType::f64;
  const auto sum = [&](Val v) { return axes.apply(ReduceKind::sum, v); };
  const auto of_sum = [&](UnaryOp f, Val total) {
    return n.cast(n.unary(f, n.cast(total, real)), type);
  };
  switch (which) {
    case ComposedReduce::l1: return n.set(sum(n.unary(UnaryOp::abs, x)));
    case ComposedReduce::l2: return n.set(of_sum(UnaryOp::sqrt, sum(n.mul(x, x))));
    case ComposedReduce::log_sum: return n.set(of_sum(UnaryOp::log, sum(x)));
    case ComposedReduce::log_sum_exp:
      return n.set(n.cast(log_sum_exp(n, n.cast(x, real), axes), type));
    case ComposedReduce::sum_square: return n.set(sum(n.mul(x, x)));
  }
}

void import_arg_reduce(NodeImport& n, bool smallest) {
  const Val x = n.in(0);
  op::ArgReduce a;
  a.smallest = smallest;
  a.axis = n.axis(n.integer("axis", 0), n.rank(x));
  a.keep = n.integer("keepdims", 1) != 0;
  a.last = n.integer("select_last_index", 0) != 0;
  n.set(n.emit(a, {x}));
}

}  // namespace tw::onnx_import
