#include "kernels/ops/conv_group.h"

#include "support/diag.h"

namespace tw {

Expected<ConvShape> conv_shape(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::Conv>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const TensorType& w = b.type(node.inputs[1]);
  const TensorType& y = b.type(node.output);
  ConvShape s;
  auto c = as_const(x.shape[1]), m = as_const(w.shape[0]);
  if (!c || !m)
    return make_error(DiagCode::unsupported,
                      "conv (node {0}): the channel count is symbolic; bind it with --dim",
                      node.name);
  s.group = a.group;
  s.c = *c;
  s.m = *m;
  s.cg = s.c / s.group;
  s.mg = s.m / s.group;
  s.n = x.shape[0];
  size_t rank = x.shape.size() - 2;
  for (size_t i = 0; i < rank; ++i) {
    auto k = as_const(w.shape[i + 2]);
    if (!k)
      return make_error(DiagCode::unsupported, "conv (node {0}): the kernel size is symbolic",
                        node.name);
    s.kernel.push_back(*k);
    s.strides.push_back(a.strides[i]);
    s.dilations.push_back(a.dilations[i]);
    s.pads_begin.push_back(a.pads[i]);
    s.in.push_back(x.shape[i + 2]);
    s.out.push_back(y.shape[i + 2]);
    s.padded |= a.pads[i] != 0 || a.pads[i + rank] != 0;
    s.pointwise &= *k == 1 && a.strides[i] == 1;
  }
  s.pointwise &= !s.padded && rank > 0;
  return s;
}

Expected<ConvShape> conv_transpose_shape(const GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::ConvTranspose>(node.attrs);
  const Shape &x = b.type(node.inputs[0]).shape, &w = b.type(node.inputs[1]).shape,
              &y = b.type(node.output).shape;
  const auto c = as_const(x[1]), mg = as_const(w[1]);
  if (!c || !mg)
    return make_error(DiagCode::unsupported,
                      "conv_transpose (node {0}): the channel count is symbolic", node.name);
  ConvShape s;
  s.group = a.group, s.c = *c, s.cg = *c / a.group, s.mg = *mg, s.m = *mg * a.group;
  s.n = x[0], s.pointwise = false;
  for (size_t i = 0; i < a.strides.size(); ++i) {
    const auto k = as_const(w[i + 2]);
    if (!k)
      return make_error(DiagCode::unsupported,
                        "conv_transpose (node {0}): the kernel size is symbolic", node.name);
    s.kernel.push_back(*k), s.strides.push_back(a.strides[i]);
    s.dilations.push_back(a.dilations[i]), s.pads_begin.push_back(a.pads[i]);
    s.in.push_back(x[i + 2]), s.out.push_back(y[i + 2]);
  }
  return s;
}

bool has_phases(const ConvShape& transposed) {
  for (size_t i = 0; i < transposed.out.size(); ++i)
    if (transposed.dilations[i] != 1 ||
        !is_const(simplify(floor_mod(transposed.out[i], transposed.strides[i])), 0))
      return false;
  return true;
}

namespace {

// The shape with the spatial axes joined into one. Pointwise convolutions need no rows.
Shape collapsed(const TensorType& t, const Expr& pixels) {
  return {t.shape[0], t.shape[1], pixels};
}

}  // namespace

ConvGroup::ConvGroup(GroupBuilder& builder, const Node& conv, ConvShape shape)
    : b_(builder),
      node_(conv),
      s_(std::move(shape)),
      x_type_(b_.type(conv.inputs[0])),
      y_type_(b_.type(conv.output)),
      acc_type_(accumulator_type(y_type_.dtype)) {
  for (NodeId id : b_.group.nodes)
    if (const Node& node = b_.graph.node(id); std::holds_alternative<op::Pool>(node.attrs))
      pool_ = &node;
  if (pool_) {
    const auto& pool = std::get<op::Pool>(pool_->attrs);
    s_.pointwise = false;
    for (size_t i = 0; i < rank(); ++i)
      s_.out[i] = simplify(b_.type(pool_->output).shape[i + 2] * Expr(pool.kernel[i]));
  }
  if (!s_.pointwise) return;
  pixels_ = simplify(element_count(s_.out));
  s_.in = s_.out = {pixels_};
  s_.kernel = s_.strides = s_.dilations = {1};
  s_.pads_begin = {0};
}

void ConvGroup::declare_inputs() {
  if (!s_.pointwise) return;
  for (NodeId id : b_.group.nodes)
    for (ValueId v : b_.graph.node(id).inputs) {
      if (!v.valid() || (b_.graph.is_constant(v) && !(v == node_.inputs[0]))) continue;
      const TensorType& t = b_.type(v);
      if (b_.inside(v) || t.shape.size() != y_type_.shape.size()) continue;
      if (is_const(simplify(element_count(Shape(t.shape.begin() + 2, t.shape.end())) - pixels_), 0))
        b_.input(v, collapsed(t, pixels_));
    }
}

ConvLoops conv_loops(const Loops& loops) {
  return {loops[0], loops[1], {}, {loops.begin() + 2, loops.end() - 1}, loops.back(), {}};
}

std::vector<Axis> ConvGroup::output_axes(const std::string& prefix) const {
  std::vector<Axis> axes = {{prefix + "n", s_.n}, {prefix + "c", Expr(s_.m)}};
  for (size_t i = 0; i < rank(); ++i) axes.push_back({prefix + "s" + std::to_string(i), s_.out[i]});
  return axes;
}

void ConvGroup::pad_rank(Index& at) const {
  while (at.size() < b_.type(node_.inputs[1]).shape.size()) at.push_back(Expr(0));
}

void ConvGroup::define_sums(const std::function<Expr(const Index& at)>& sum) {
  bool has_bias = node_.inputs.size() > 2 && node_.inputs[2].valid();
  b_.define(node_.output, [this, has_bias, sum](const Index& logical) {
    Expr total = sum(output_index(logical));
    if (has_bias) total = total + widen(b_.element(node_.inputs[2], {logical[1]}));
    return total.type() == y_type_.dtype ? total : cast(y_type_.dtype, total);
  });
}

Stage ConvGroup::store(const std::string& stage, const std::vector<Axis>& axes, const Index& index,
                       BufferId buffer, ValueId result) {
  b_.declare(axes);
  return b_.stage(stage, axes, buffer, index, b_.element(result, logical_index(index)));
}

// Stage conv makes the pool's input. The pool's element is an expression over all points of its
// window. The two types differ where a pool sums bytes.
Stage ConvGroup::write_windows(const std::vector<Axis>& axes) {
  const auto& pool = std::get<op::Pool>(pool_->attrs);
  const DType read_type = b_.type(pool_->inputs[0]).dtype, type = b_.type(pool_->output).dtype,
              sum_type = accumulator_type(type);
  const BufferId conv = b_.temp("conv", read_type, extents(axes));
  const Stage stage = store("conv", axes, variables(axes), conv, pool_->inputs[0]);
  b_.define(pool_->output, [=, this, &pool](const Index& logical) {
    Expr all;
    const Shape window(pool.kernel.begin(), pool.kernel.end());
    const int64_t points = *as_const(simplify(element_count(window)));
    for (int64_t point = 0; point < points; ++point) {
      const Index tap = unflatten_index(window, Expr(point));
      Index at = logical;
      for (size_t i = 0; i < tap.size(); ++i)
        at[i + 2] = b_.simplified(logical[i + 2] * Expr(pool.kernel[i]) + tap[i]);
      const Expr read = load(conv, read_type, output_index(at)),
                 value = sum_type == read_type ? read : cast(sum_type, read);
      all = !all.defined() ? value : pool.kind == PoolKind::max ? max(all, value) : all + value;
    }
    if (pool.kind == PoolKind::average) all = divide(all, Expr(points));
    return all.type() == type ? all : cast(type, all);
  });
  return stage;
}

ConvOutput ConvGroup::write_output(const std::function<Expr(const Index& at)>& sum) {
  define_sums(sum);
  std::vector<Axis> axes = output_axes("");
  ConvOutput out;
  if (pool_) {
    const std::vector<Axis> conv_axes = output_axes("conv_");
    out.conv = write_windows(conv_axes);
    out.conv_loops = conv_loops(loops(conv_axes));
    out.window = std::get<op::Pool>(pool_->attrs).kernel;
    for (size_t i = 0; i < rank(); ++i) axes[i + 2].extent = b_.type(pool_->output).shape[i + 2];
  }
  const ValueId result = b_.output_value();
  out.y = store("y", axes, variables(axes), b_.output(result, extents(axes)), result);
  out.loops = conv_loops(loops(axes));
  return out;
}

BufferName ConvGroup::bias_parameter() const {
  const ValueId bias = node_.inputs.size() > 2 ? node_.inputs[2] : ValueId();
  const bool is_one = !bias.valid() || b_.inside(bias) ||
                      is_const(element_count(b_.type(bias).shape), 1);
  return is_one ? BufferName() : b_.name_of(b_.input(bias));
}

Index ConvGroup::logical_index(const Index& at) const {
  Index logical = {at[0], at[1]};
  if (s_.pointwise) {
    Index spatial = unflatten_index(Shape(y_type_.shape.begin() + 2, y_type_.shape.end()), at[2]);
    for (const Expr& e : spatial) logical.push_back(b_.simplified(e));
  } else {
    for (size_t i = 0; i < rank(); ++i) logical.push_back(at[i + 2]);
  }
  return logical;
}

Index ConvGroup::output_index(const Index& logical) const {
  Index at = {logical[0], logical[1]};
  if (s_.pointwise)
    at.push_back(b_.simplified(flatten_index(Shape(y_type_.shape.begin() + 2, y_type_.shape.end()),
                                             Index(logical.begin() + 2, logical.end()))));
  else at.insert(at.end(), logical.begin() + 2, logical.end());
  return at;
}

}  // namespace tw
