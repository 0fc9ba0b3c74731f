// Reductions, and the normalisations built on them, as they are defined. The rows are all axes but
// the reduced ones.
#include <cmath>
#include <limits>

#include "ir/storage_types.h"
#include "kernels/common/group_builder.h"
#include "kernels/common/top_number.h"
#include "kernels/reduce/reduce.h"

namespace tw {
namespace {

std::string numbered(const char* prefix, size_t i) { return prefix + std::to_string(i); }

Expr lowest(DType t) {
  if (is_float(t)) return imm(-std::numeric_limits<double>::infinity(), t);
  return t == DType::boolean ? bool_imm(false) : int_imm(lowest_of(t), t);
}
Expr highest(DType t) {
  if (is_float(t)) return imm(std::numeric_limits<double>::infinity(), t);
  return t == DType::boolean ? bool_imm(true) : int_imm(highest_of(t), t);
}
Expr identity(Combiner c, DType t) {
  switch (c) {
    case Combiner::none: break;
    case Combiner::add: return imm(0, t);
    case Combiner::mul: return imm(1, t);
    case Combiner::min: return highest(t);
    case Combiner::max: return lowest(t);
  }
  TW_UNREACHABLE("no identity");
}
Expr widen(const Expr& e, DType t) { return e.type() == t ? e : cast(t, e); }

Expr as_it_is(const Expr& x) { return x; }

// Combines element(row, k) over k in 0..extent into a temp over the row axes, in stage NAME. The
// axes of a row are NAME_r0.. and NAME_k. `of` is applied to each operand.
BufferId reduce_rows(GroupBuilder& b, ReduceStages& m, const std::string& name, const Shape& rows,
                     const Expr& extent, DType t, Combiner combiner,
                     const std::function<Expr(const Index& row, const Expr& k)>& element,
                     Expr (*of)(const Expr&) = as_it_is) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < rows.size(); ++i)
    axes.push_back({numbered((name + "_r").c_str(), i), rows[i]});
  const Index row = variables(axes);
  axes.push_back({name + "_k", extent, AxisRole::reduce});
  b.declare(axes);
  const BufferId total = b.temp(name, t, rows);
  const Stage whole = b.stage(name, axes, total, row, of(element(row, var(name + "_k"))), combiner,
                              identity(combiner, t));
  m.reductions.push_back({{}, whole});
  return total;
}

// Rows are the axes before `axis`. The axes from it on are joined to columns.
struct Rows {
  Shape rows, columns;
  Expr count;  // elements of a row
  Index logical(const Index& row, const Expr& k) const {
    Index index = row;
    Index inner = unflatten_index(columns, k);
    index.insert(index.end(), inner.begin(), inner.end());
    return index;
  }
};
Rows split_rows(const Shape& shape, int64_t axis) {
  Rows r;
  r.rows.assign(shape.begin(), shape.begin() + axis);
  r.columns.assign(shape.begin() + axis, shape.end());
  r.count = simplify(element_count(r.columns));
  return r;
}

// Takes what is combined element by element with its last axes joined, so that a place in them is
// not divided by sizes that are free.
void join_columns(GroupBuilder& b, ValueId v, const Rows& rows) {
  if (as_const(rows.count) || rows.columns.size() < 2) return;
  const TensorType& t = b.type(v);
  if (b.inside(v)) {
    const Node& node = *b.graph.def(v);
    if (!is_elementwise(node)) return;
    for (ValueId input : node.inputs)
      if (input.valid() && equal(b.type(input).shape, t.shape)) join_columns(b, input, rows);
    return;
  }
  if (!t.layout.plain()) return;
  Shape joined = rows.rows;
  joined.push_back(rows.count);
  b.input(v, joined);
}

Combiner combiner_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::mean: return Combiner::add;
    case ReduceKind::max: return Combiner::max;
    case ReduceKind::min: return Combiner::min;
    case ReduceKind::prod: return Combiner::mul;
  }
  TW_UNREACHABLE("bad reduce kind");
}

// The type of a sum. A mean of integers needs their exact sum, as far as 64 bits hold it. It is 32
// bits if the count is known and the sum fits.
DType sum_type(ReduceKind kind, DType t, const Expr& count) {
  if (kind != ReduceKind::mean || is_float(t) || t == DType::u64) return accumulator_type(t);
  constexpr int kSumBits = 31;
  const std::optional<int64_t> most = as_const(count);
  const bool narrow = dtype_bytes(t) < 4 && most &&
                      *most <= int64_t{1} << (kSumBits - dtype_bytes(t) * 8);
  return narrow ? DType::i32 : DType::i64;
}

}  // namespace

Expected<Lowered<ReduceStages>> define_reduce(GroupBuilder& b, const Node& node) {
  ReduceStages m;
  const auto& a = std::get<op::Reduce>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const TensorType& y = b.type(node.output);
  Combiner combiner = combiner_of(a.kind);
  size_t rank = x.shape.size();
  std::vector<bool> reduced(rank);
  Expr count(1);
  for (int64_t axis : a.axes) {
    reduced[static_cast<size_t>(axis)] = true;
    count = count * x.shape[static_cast<size_t>(axis)];
  }
  const DType t = sum_type(a.kind, y.dtype, simplify(count));
  bool trailing = x.layout.plain() && !a.axes.empty();
  for (size_t i = 0; i < a.axes.size(); ++i)
    trailing &= a.axes[i] == static_cast<int64_t>(rank - a.axes.size() + i);
  BufferId sum;
  Shape kept;  // extents of the remaining axes
  for (size_t i = 0; i < rank; ++i) {
    if (reduced[i]) continue;
    if (x.layout.axis == static_cast<int>(i))
      m.blocks = {static_cast<int>(kept.size()), x.layout.block};
    kept.push_back(x.shape[i]);
  }
  if (trailing) {
    Rows rows = split_rows(x.shape, static_cast<int64_t>(rank - a.axes.size()));
    join_columns(b, node.inputs[0], rows);
    sum = reduce_rows(b, m, "acc", rows.rows, rows.count, t, combiner,
                      [&](const Index& row, const Expr& k) {
                        return widen(b.element(node.inputs[0], rows.logical(row, k)), t);
                      });
  } else {
    std::vector<Axis> axes;
    Index out, logical(rank);
    for (size_t i = 0, o = 0; i < rank; ++i) {
      if (reduced[i]) continue;
      axes.push_back({numbered("a", i), kept[o++]});
      out.push_back(var(axes.back().name));
      logical[i] = out.back();
    }
    for (size_t i = 0; i < rank; ++i)
      if (reduced[i]) {
        axes.push_back({numbered("k", i), x.shape[i], AxisRole::reduce});
        logical[i] = var(axes.back().name);
      }
    b.declare(axes);
    sum = b.temp("acc", t, kept);
    b.stage("acc", axes, sum, out, widen(b.element(node.inputs[0], logical), t), combiner,
            identity(combiner, t));
  }
  m.reduced = b.stage_of(sum);
  Expr total = simplify(count);
  b.define(node.output, [&, sum, total](const Index& logical) {
    Index at;
    for (size_t i = 0, o = 0; i < rank; ++i) {
      if (!reduced[i]) at.push_back(logical[o++]);
      else if (a.keep) ++o;
    }
    Expr value = load(sum, t, at);
    if (a.kind == ReduceKind::mean) value = divide(value, total);
    return widen(value, y.dtype);
  });
  m.y = b.store_output().stage;
  return b.finish(std::move(m));
}

// Two reductions find the extreme value, then the first (or last) index that has it. If the extreme
// is NaN, nothing equals it, and the first (or last) NaN is found.
Expected<Lowered<ReduceStages>> define_arg_reduce(GroupBuilder& b, const Node& node) {
  ReduceStages m;
  const auto& a = std::get<op::ArgReduce>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  auto axis = static_cast<size_t>(a.axis);
  Combiner combiner = a.smallest ? Combiner::min : Combiner::max;
  Shape rows;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != axis) rows.push_back(x.shape[i]);
  auto logical = [&](const Index& row, const Expr& k) {
    Index index = row;
    index.insert(index.begin() + a.axis, k);
    return index;
  };
  BufferId best = reduce_rows(
      b, m, "best", rows, x.shape[axis], x.dtype, combiner,
      [&](const Index& row, const Expr& k) { return b.element(node.inputs[0], logical(row, k)); });
  Combiner pick = a.last ? Combiner::max : Combiner::min;
  Expr none = a.last ? Expr(0) : x.shape[axis] - Expr(1);
  BufferId found = reduce_rows(
      b, m, "found", rows, x.shape[axis], DType::i64, pick, [&](const Index& row, const Expr& k) {
        const Expr value = b.element(node.inputs[0], logical(row, k));
        Expr here = eq(value, load(best, x.dtype, row));
        if (is_float(x.dtype))
          here = binary(BinaryOp::logical_or, here, unary(UnaryOp::is_nan, value));
        return select(here, k, none);
      });
  b.define(node.output, [&, found](const Index& index) {
    Index row = index;
    if (a.keep) row.erase(row.begin() + a.axis);
    return load(found, DType::i64, row);
  });
  m.y = b.store_output().stage;
  return b.finish(std::move(m));
}

// Stages: top (row maximum), e = exp(x - top), sum, y. The exponentials are stored, so each is
// computed once. If a row may be fully masked, its top is at least a finite number, so that each e
// is 0, and its sum counts as 1.
Expected<Lowered<ReduceStages>> define_softmax(GroupBuilder& b, const Node& node) {
  ReduceStages m;
  const auto& a = std::get<op::Softmax>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const TensorType& y = b.type(node.output);
  DType t = accumulator_type(y.dtype);
  auto axis = static_cast<size_t>(a.axis);
  Shape rows;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != axis) rows.push_back(x.shape[i]);
  Expr extent = x.shape[axis];
  auto element = [&](const Index& row, const Expr& k) {
    Index index = row;
    index.insert(index.begin() + a.axis, k);
    return widen(b.element(node.inputs[0], index), t);
  };
  BufferId top = reduce_rows(b, m, "top", rows, extent, t, Combiner::max, element, top_candidate);
  auto centred = [&](const Index& row, const Expr& k) {
    const Expr highest = load(top, t, row);
    return element(row, k) -
           (a.masked ? binary(BinaryOp::max, imm(std::numeric_limits<float>::lowest(), t), highest)
                     : highest);
  };
  Shape e_shape = rows;
  e_shape.push_back(extent);
  BufferId e{};
  if (!a.log) {
    std::vector<Axis> axes;
    Index at;
    for (size_t i = 0; i < e_shape.size(); ++i) {
      axes.push_back({numbered("e", i), e_shape[i]});
      at.push_back(var(axes.back().name));
    }
    b.declare(axes);
    e = b.temp("e", t, e_shape);
    m.exponentials = b.stage(
        "e", axes, e, at, unary(UnaryOp::exp, centred(Index(at.begin(), at.end() - 1), at.back())));
  }
  BufferId sum = reduce_rows(b, m, "sum", rows, extent, t, Combiner::add,
                             [&](const Index& row, const Expr& k) {
                               if (a.log) return unary(UnaryOp::exp, centred(row, k));
                               Index at = row;
                               at.push_back(k);
                               return load(e, t, at);
                             });
  b.define(node.output, [&, e, sum](const Index& index) {
    Index row = index;
    const Expr& k = index[axis];
    row.erase(row.begin() + a.axis);
    if (a.log) return widen(centred(row, k) - unary(UnaryOp::log, load(sum, t, row)), y.dtype);
    Index at = row;
    at.push_back(k);
    Expr total = load(sum, t, row);
    if (a.masked) total = select(eq(total, imm(0, t)), imm(1, t), total);
    return widen(binary(BinaryOp::div, load(e, t, at), total), y.dtype);
  });
  m.y = b.store_output().stage;
  return b.finish(std::move(m));
}

// Stages: sum (if rows are centred), square (of the centred row), y = (x - mean) * rsqrt(variance +
// epsilon) * scale + bias.
Expected<Lowered<ReduceStages>> define_layer_norm(GroupBuilder& b, const Node& node) {
  ReduceStages m;
  const auto& a = std::get<op::LayerNorm>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const TensorType& y = b.type(node.output);
  DType t = accumulator_type(y.dtype);
  Rows rows = split_rows(x.shape, a.axis);
  auto element = [&](const Index& row, const Expr& k) {
    return widen(b.element(node.inputs[0], rows.logical(row, k)), t);
  };
  const BufferId sum = a.centred ? reduce_rows(b, m, "sum", rows.rows, rows.count, t, Combiner::add,
                                               element)
                                 : BufferId{};
  auto centred = [&, sum](const Index& row, const Expr& k) {
    return a.centred ? element(row, k) - divide(load(sum, t, row), rows.count) : element(row, k);
  };
  BufferId square = reduce_rows(b, m, "square", rows.rows, rows.count, t, Combiner::add,
                                [&](const Index& row, const Expr& k) {
                                  Expr d = centred(row, k);
                                  return d * d;
                                });
  b.define(node.output, [&, square](const Index& index) {
    Index row(index.begin(), index.begin() + a.axis), inner(index.begin() + a.axis, index.end());
    Expr k = b.simplified(flatten_index(rows.columns, inner));
    Expr variance = divide(load(square, t, row), rows.count) + imm(a.epsilon, t);
    Expr value = centred(row, k) * unary(UnaryOp::rsqrt, variance);
    auto parameter = [&](size_t i) {
      const Shape& shape = b.type(node.inputs[i]).shape;
      return widen(
          b.element(node.inputs[i],
                    broadcast_index(shape, Index(index.end() - static_cast<int64_t>(shape.size()),
                                                 index.end()))),
          t);
    };
    value = value * parameter(1);
    if (node.inputs.size() > 2 && node.inputs[2].valid()) value = value + parameter(2);
    return widen(value, y.dtype);
  });
  m.y = b.store_output().stage;
  return b.finish(std::move(m));
}

}  // namespace tw
