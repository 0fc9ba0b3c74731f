// Matrix products as they are defined:
//
//   for ab0 in batch { for ai in rows { for aj in columns { for k in depth reduce {
//     acc: acc[ab0, ai, aj] += x[ab0, ai, k] * weights[k, aj] init 0
//   } } } }
//
// Batches that share a right operand are joined to the rows.
#include "kernels/matmul/matmul.h"
#include "kernels/common/group_builder.h"

namespace tw {
namespace {

// The left operand's element in a row of all its batches
Expr joined_left(GroupBuilder& b, const Node& node, const Expr& rows, const Expr& depth,
                 const Expr& row, const Expr& step) {
  const ValueId left = node.inputs[0];
  if (!(left == node.inputs[1]) && !b.graph.is_constant(left) && !b.inside(left))
    return load(b.input(left, {rows, depth}), b.type(left).dtype, {row, step});
  const Shape& shape = b.type(left).shape;
  Index at = unflatten_index(Shape(shape.begin(), shape.end() - 1), row);
  for (Expr& e : at) e = b.simplified(e);
  at.push_back(step);
  return b.element(left, at);
}

bool has_one_matrix(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - 2,
                     [](const Expr& extent) { return is_const(extent, 1); });
}

}  // namespace

Index matrix_index(const Shape& shape, bool transposed, const Index& batch, const Expr& row,
                   const Expr& column) {
  const size_t own = shape.size() - 2;
  Index index;
  for (size_t i = 0; i < own; ++i)
    index.push_back(is_const(shape[i], 1) ? Expr(0) : batch[batch.size() - own + i]);
  index.push_back(transposed ? column : row);
  index.push_back(transposed ? row : column);
  return index;
}

Lowered<MatMulStages> define_matmul(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::MatMul>(node.attrs);
  const ValueId left = node.inputs[0], right = node.inputs[1];
  const Shape &xs = b.type(left).shape, &ws = b.type(right).shape;
  const TensorType& y = b.type(node.output);
  const DType sums = accumulator_type(y.dtype);
  const bool tf32 = multiplies_tf32(b);
  const auto widened = [&](const Expr& e) {
    if (tf32) return unary(UnaryOp::tf32, e);
    return e.type() == sums ? e : cast(sums, e);
  };
  const Expr depth = a.trans_a ? xs[xs.size() - 2] : xs.back();
  const bool joined = !a.trans_a && has_one_matrix(ws);
  const Shape batch(y.shape.begin(), y.shape.end() - 2), outer = joined ? Shape{} : batch;
  const Expr own_rows = y.shape[y.shape.size() - 2],
             rows = joined ? simplify(element_count(batch) * own_rows) : own_rows;
  std::vector<Axis> axes;
  for (size_t i = 0; i < outer.size(); ++i) axes.push_back({"ab" + std::to_string(i), outer[i]});
  const Index batches = variables(axes);
  axes.insert(axes.end(), {{"ai", rows}, {"aj", y.shape.back()}, {"k", depth, AxisRole::reduce}});
  b.declare(axes);
  const Expr i = var("ai"), j = var("aj"), k = var("k");

  MatMulStages m;
  const Index right_at = matrix_index(ws, a.trans_b, batches, k, j);
  Expr right_factor;
  if (b.graph.is_constant(right)) {
    const BufferId weights = b.input(right, {}, "weights");
    right_factor = load(weights, b.type(right).dtype, right_at);
    m.weights = b.name_of(weights);
  } else {
    right_factor = b.element(right, right_at);
  }
  for (size_t d = 0; d + 2 < ws.size(); ++d)
    if (!is_const(ws[d], 1))
      m.right_batches.emplace_back(d, axes[outer.size() - (ws.size() - 2) + d].loop());
  const Expr left_element = joined ? joined_left(b, node, rows, depth, i, k)
                                   : b.element(left, matrix_index(xs, a.trans_a, batches, i, k));
  const Expr left_factor = less_zero(widened(left_element), a.a_zero);

  Index at = batches;
  at.insert(at.end(), {i, j});
  Shape shape = outer;
  shape.insert(shape.end(), {rows, y.shape.back()});
  const BufferId acc = b.temp("acc", sums, shape);
  m.acc = b.stage("acc", axes, acc, at, left_factor * widened(right_factor), Combiner::add,
                  imm(0, sums));
  m.acc_row = axes[outer.size()].loop(), m.acc_column = axes[outer.size() + 1].loop();
  m.depth = {axes.back().loop()};
  m.left_type = b.type(left).dtype, m.right_type = b.type(right).dtype;
  m.left_zero = a.a_zero;
  m.right_is_matrix = ws.size() == 2;
  m.depth_is_last = !a.trans_a;
  m.narrow_result = y.dtype != sums;
  m.y = write_product(b, node, joined, [&](const Index& at) { return load(acc, sums, at); });
  return b.finish(std::move(m));
}

ProductOutput write_product(GroupBuilder& b, const Node& node, bool joined,
                            const std::function<Expr(const Index& at)>& sum) {
  const TensorType& y = b.type(node.output);
  const Shape outer = joined ? Shape{} : Shape(y.shape.begin(), y.shape.end() - 2),
              all_but_columns(y.shape.begin(), y.shape.end() - 1);
  const Expr rows = joined ? simplify(element_count(all_but_columns)) : y.shape[y.shape.size() - 2];
  Shape out_shape = outer;
  out_shape.insert(out_shape.end(), {rows, y.shape.back()});
  if (joined)
    for (NodeId id : b.group.nodes)
      for (ValueId v : b.graph.node(id).inputs) {
        if (!v.valid() || v == node.inputs[0] || b.graph.is_constant(v) ||
            b.type(v).shape.size() != y.shape.size())
          continue;
        bool same = true;
        for (size_t d = 0; d < y.shape.size(); ++d)
          same &= is_const(simplify(b.type(v).shape[d] - y.shape[d]), 0);
        if (!b.inside(v) && same) b.input(v, out_shape);
      }
  b.define(node.output, [&](const Index& logical) {
    Index at(logical.begin(), logical.end() - 2);
    if (joined)
      at = {
          b.simplified(flatten_index(all_but_columns, Index(logical.begin(), logical.end() - 1)))};
    else at.push_back(logical[logical.size() - 2]);
    at.push_back(logical.back());
    Expr total = sum(at);
    return total.type() == y.dtype ? total : cast(y.dtype, total);
  });
  std::vector<Axis> axes;
  for (size_t d = 0; d < outer.size(); ++d) axes.push_back({"b" + std::to_string(d), outer[d]});
  axes.insert(axes.end(), {{"i", rows}, {"j", y.shape.back()}});
  b.declare(axes);
  Index index = variables(axes), logical = index;
  if (joined) {
    logical.clear();
    for (const Expr& e : unflatten_index(all_but_columns, index[0]))
      logical.push_back(b.simplified(e));
    logical.push_back(index[1]);
  }
  Expr value = b.element(b.output_value(), logical);
  ProductOutput made;
  made.stage = b.stage("y", axes, b.output(b.output_value(), out_shape), index, value);
  made.batches = loops(axes);
  made.batches.resize(outer.size());
  made.row = axes[outer.size()].loop(), made.column = axes.back().loop();
  return made;
}

}  // namespace tw
