// Running sums and products: a scan along the axis over a temp whose first row is the neutral
// element. The output copies the rows, shifted by one unless exclusive. Stages: sums.first, sums
// (in the scan), y.
#include "kernels/common/group_builder.h"
#include "kernels/reduce/reduce.h"

namespace tw {

Expected<Lowered<ElementwiseStages>> define_cumulate(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::Cumulate>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const DType type = x.dtype, t = accumulator_type(type);
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.shape.size())
                                                   : a.axis);
  const Expr extent = x.shape[axis];
  Shape rows = x.shape;
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
  const auto axes_of = [&](const std::string& prefix) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < rows.size(); ++i) axes.push_back({prefix + std::to_string(i), rows[i]});
    b.declare(axes);
    return axes;
  };
  const auto row_of = [](const Expr& step, Index row) {
    row.insert(row.begin(), step);
    return row;
  };
  Shape shape = rows;
  shape.insert(shape.begin(), simplify(extent + Expr(1)));
  const BufferId sums = b.temp("sums", t, shape);
  const std::vector<Axis> first = axes_of("f"), each = axes_of("r");
  b.stage("sums.first", first, sums, row_of(0, variables(first)),
          imm(a.kind == ReduceKind::sum ? 0 : 1, t));
  b.scan({"t", extent, AxisRole::scan}, [&] {
    const Expr step = var("t");
    Index from = variables(each);
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(axis),
                a.reverse ? extent - Expr(1) - step : step);
    const Expr read = b.element(node.inputs[0], from), value = type == t ? read : cast(t, read);
    const Expr before = load(sums, t, row_of(step, variables(each)));
    b.stage("sums", each, sums, row_of(step + Expr(1), variables(each)),
            binary(a.kind == ReduceKind::sum ? BinaryOp::add : BinaryOp::mul, before, value));
  });
  b.define(node.output, [&, sums](const Index& logical) {
    Index row = logical;
    const Expr at = a.reverse ? extent - Expr(1) - logical[axis] : logical[axis];
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(axis));
    const Expr sum = load(sums, t, row_of(b.simplified(a.exclusive ? at : at + Expr(1)), row));
    return type == t ? sum : cast(type, sum);
  });
  b.store_output();
  return b.finish(ElementwiseStages{});
}

}  // namespace tw
