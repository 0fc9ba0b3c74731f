// Pooling over any number of spatial axes. Stages: acc, y. Points outside the input do not take
// part. An average divides by the number of points inside, or by the window if the padding counts.
#include <limits>

#include "ir/storage_types.h"
#include "kernels/common/group_builder.h"
#include "kernels/pool/pool.h"

namespace tw {

Expected<Lowered<PoolStages>> define_pool(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::Pool>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const TensorType& y = b.type(node.output);
  DType t = accumulator_type(y.dtype);
  size_t rank = a.kernel.size();
  const Shape& shape = y.shape;
  std::vector<Axis> out_axes, axes;
  Index out;
  for (size_t i = 0; i < shape.size(); ++i) {
    out_axes.push_back({"a" + std::to_string(i), shape[i]});
    out.push_back(var(out_axes.back().name));
  }
  axes = out_axes;
  for (size_t i = 0; i < rank; ++i)
    axes.push_back({"k" + std::to_string(i), Expr(a.kernel[i]), AxisRole::reduce});
  b.declare(axes);
  Index from = out;
  Expr inside;
  for (size_t i = 0; i < rank; ++i) {
    from[i + 2] = b.simplified(out[i + 2] * Expr(a.strides[i]) +
                               var("k" + std::to_string(i)) * Expr(a.dilations[i]) -
                               Expr(a.pads[i]));
    inside = logical_and(inside,
                         logical_and(le(Expr(0), from[i + 2]), lt(from[i + 2], x.shape[i + 2])));
  }
  BufferId in = b.input(node.inputs[0]), acc = b.temp("acc", t, shape);
  Expr value = load(in, x.dtype, from);
  if (value.type() != t) value = cast(t, value);
  bool is_max = a.kind == PoolKind::max;
  double lowest = is_float(t) ? -std::numeric_limits<double>::infinity() : 0;
  Expr init = !is_max ? imm(0, t) : is_float(t) ? imm(lowest, t) : int_imm(lowest_of(t), t);
  PoolStages m;
  m.acc_loops = loops(out_axes);
  m.acc = b.stage("acc", axes, acc, out, value, is_max ? Combiner::max : Combiner::add, init,
                  inside);

  b.define(node.output, [&, acc](const Index& logical) {
    Expr sum = load(acc, t, logical);
    if (a.kind != PoolKind::average) return sum.type() == y.dtype ? sum : cast(y.dtype, sum);
    Expr count(1);
    for (size_t i = 0; i < rank; ++i) {
      Expr start = logical[i + 2] * Expr(a.strides[i]) - Expr(a.pads[i]);
      int64_t d = a.dilations[i];
      Expr points(a.kernel[i]);
      // The window, cut where a ceil_mode window exceeds the padded input
      if (a.count_include_pad) {
        Expr end = min(start + Expr((a.kernel[i] - 1) * d + 1),
                       x.shape[i + 2] + Expr(a.pads[i + rank]));
        points = ceil_div(end - start, d);
      } else {
        Expr first = max(ceil_div(-start, d), Expr(0));
        Expr last = min(Expr(a.kernel[i]), ceil_div(x.shape[i + 2] - start, d));
        points = last - first;
      }
      count = count * points;
    }
    Expr mean = divide(sum, b.simplified(count));
    return mean.type() == y.dtype ? mean : cast(y.dtype, mean);
  });
  const auto [stage, loops] = b.store_output();
  m.y = stage, m.y_loops = loops;
  return b.finish(std::move(m));
}

}  // namespace tw
