// Re-arranged copies of operands: made at compile time for constants, by a stage otherwise.
#include "ir/graph/short_floats.h"
#include "kernels/common/group_builder.h"

#include <algorithm>

namespace tw {

DType accumulator_type(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

Expr less_zero(const Expr& x, int64_t zero) { return zero == 0 ? x : x - int_imm(zero, x.type()); }

bool multiplies_tf32(const GroupBuilder& b) {
  const std::vector<ValueId>& operands = b.graph.node(b.group.anchor).inputs;
  return operands.size() > 1 && std::all_of(operands.begin(), operands.begin() + 2, [&](ValueId v) {
           return b.inside(v) && rounds_to_tf32(*b.graph.def(v));
         });
}

BufferId GroupBuilder::packed(
    ValueId v, const std::string& name, const std::vector<Axis>& axes,
    const std::function<Expr(const std::function<Expr(const Index&)>& read)>& element_at,
    const Schedule& schedule) {
  const Value& value = graph.value(v);
  Shape shape = extents(axes);
  Index index = variables(axes);
  if (!value.constant) {
    declare(axes);
    Expr made = element_at([&](const Index& at) { return this->element(v, at); });
    BufferId buffer = temp(name, value.type.dtype, shape);
    stage(name, axes, buffer, index, made);
    return buffer;
  }
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "pack";
  kernel->buffers.push_back({"x", value.type.dtype, value.type.shape, BufferRole::input, "global"});
  kernel->buffers.push_back({"y", value.type.dtype, shape, BufferRole::output, "global"});
  Ranges ranges;
  for (const Axis& axis : axes) ranges[axis.name] = Range{Expr(0), simplify(axis.extent - Expr(1))};
  Expr made = element_at([&](const Index& at) {
    Index simple;
    for (const Expr& e : at) simple.push_back(simplify(e, ranges));
    return load(BufferId{0}, value.type.dtype, simple);
  });
  Stmt nest = make_store(
      {.label = "y", .buffer = BufferId{1}, .indices = index, .value = simplify(made, ranges)});
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    nest = make_loop(axis->name, axis->extent, nest);
  kernel->body = nest;
  Expected<Kernel> scheduled = tw::apply(*kernel, schedule);
  TW_CHECK(bool(scheduled), "packing of '{0}': {1}", name, error_text(scheduled.takeError()));
  *kernel = std::move(*scheduled);
  return constant(name, value.type.dtype, shape, *value.constant, kernel, v);
}

BufferId GroupBuilder::padded(ValueId x, const Shape& spatial, const Ints& before, int64_t fill) {
  const TensorType& t = type(x);
  Shape shape = {t.shape[0], t.shape[1]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  std::vector<Axis> axes;
  for (const Expr& extent : shape) axes.push_back({"pad" + std::to_string(axes.size()), extent});
  declare(axes);
  Index at = variables(axes), from = at;
  Expr inside;
  for (size_t i = 0; i < spatial.size(); ++i) {
    from[i + 2] = simplified(at[i + 2] - Expr(before[i]));
    inside = logical_and(inside,
                         logical_and(le(Expr(0), from[i + 2]), lt(from[i + 2], t.shape[i + 2])));
  }
  BufferId padded = temp("xp", t.dtype, extents(axes));
  stage("pad", axes, padded, at,
        select(inside, load(input(x), t.dtype, from),
               is_float(t.dtype) ? imm(0, t.dtype) : int_imm(fill, t.dtype)));
  return padded;
}

}  // namespace tw
