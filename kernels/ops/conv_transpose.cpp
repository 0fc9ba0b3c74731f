// Transposed convolution as sub-pixel convolutions, as it is defined. The output positions
// o = q*s + r of phase r are an ordinary convolution over ceil(K/s) taps: o + p - k = s * (q +
// (r+p)/s - j) for k = j*s + (r+p) mod s. So the zeros between input pixels are never multiplied.
// This needs dilation 1 and strides that divide the output; otherwise every tap is guarded. Stages:
// pad, acc, y.
#include "kernels/common/group_builder.h"
#include "kernels/ops/conv_group.h"

namespace tw {
namespace {

class TransposeLowering {
 public:
  TransposeLowering(GroupBuilder& builder, const Node& node, const ConvShape& shape)
      : b_(builder),
        node_(node),
        a_(std::get<op::ConvTranspose>(node.attrs)),
        x_type_(b_.type(node.inputs[0])),
        y_type_(b_.type(node.output)),
        w_type_(b_.type(node.inputs[1])),
        subpixel_(has_phases(shape)),
        cg_(shape.cg),
        mg_(shape.mg),
        m_(shape.m),
        acc_type_(accumulator_type(y_type_.dtype)),
        kernel_(shape.kernel) {}

  Lowered<ConvStages> lower() {
    out_axes_ = output_axes("a");
    b_.declare(out_axes_);
    subpixel_ ? accumulate_subpixel() : accumulate_guarded();
    write_output();
    stages_.input = b_.name_of(b_.input(node_.inputs[0]));
    stages_.transposed = true;
    stages_.groups = a_.group, stages_.group_in = cg_, stages_.group_out = mg_;
    stages_.in_block = b_.type(node_.inputs[0]).layout.block;
    stages_.out_block = b_.type(b_.output_value()).layout.block;
    stages_.left_type = x_type_.dtype, stages_.left_zero = a_.x_zero;
    stages_.right_type = w_type_.dtype;
    return b_.finish(std::move(stages_));
  }

 private:
  size_t rank() const { return kernel_.size(); }
  static std::string name(const char* prefix, size_t i) { return prefix + std::to_string(i); }

  // Axes n, c, then for each spatial axis q and r (sub-pixel) or o
  std::vector<Axis> output_axes(const std::string& prefix) const {
    std::vector<Axis> axes = {{prefix + "n", y_type_.shape[0]}, {prefix + "c", Expr(m_)}};
    for (size_t i = 0; i < rank(); ++i) {
      std::string id = std::to_string(i);
      if (subpixel_) {
        axes.push_back(
            {prefix + "q" + id, simplify(floor_div(y_type_.shape[i + 2], a_.strides[i]))});
        axes.push_back({prefix + "r" + id, Expr(a_.strides[i])});
      } else {
        axes.push_back({prefix + "s" + id, y_type_.shape[i + 2]});
      }
    }
    return axes;
  }

  Expr in_channel(const Index& out) const {
    Expr base = a_.group == 1 ? Expr(0) : floor_div(out[1], Expr(mg_)) * Expr(cg_);
    return b_.simplified(base + var("rc"));
  }
  Expr widen(const Expr& e) const { return e.type() == acc_type_ ? e : cast(acc_type_, e); }

  Expr left(const Expr& value) const { return less_zero(widen(value), a_.x_zero); }

  void accumulate_subpixel() {
    ValueId x = node_.inputs[0];
    Ints taps, base;
    Shape shape = {y_type_.shape[0], x_type_.shape[1]};
    for (size_t i = 0; i < rank(); ++i) {
      int64_t s = a_.strides[i], p = a_.pads[i];
      taps.push_back((kernel_[i] + s - 1) / s);
      base.push_back(std::max<int64_t>(0, taps[i] - 1 - p / s));
      shape.push_back(
          simplify(floor_div(y_type_.shape[i + 2], s) + Expr(base[i] + (s - 1 + p) / s)));
    }
    BufferId padded = b_.padded(x, Shape(shape.begin() + 2, shape.end()), base, a_.x_zero);
    stages_.copies.push_back(b_.stage_of(padded));

    std::vector<Axis> axes = out_axes_;
    axes.push_back({"rc", Expr(cg_), AxisRole::reduce});
    for (size_t i = 0; i < rank(); ++i)
      axes.push_back({name("k", i), Expr(taps[i]), AxisRole::reduce});
    b_.declare(axes);
    Index out = variables(out_axes_), where;
    Index phases, steps;
    for (size_t i = 0; i < rank(); ++i) {
      Expr q = out[2 + 2 * i], r = out[3 + 2 * i], j = var(name("k", i));
      where.push_back(
          b_.simplified(q + floor_div(r + Expr(a_.pads[i]), a_.strides[i]) - j + Expr(base[i])));
      phases.push_back(r);
      steps.push_back(j);
    }
    Index index = {out[0], in_channel(out)};
    index.insert(index.end(), where.begin(), where.end());
    const Expr value = load(padded, x_type_.dtype, index);
    finish_sum(axes, out, left(value) * widen(weight(out, phases, steps)), {});
  }

  // The weight; 0 if tap j of phase r is outside the kernel
  Expr weight(const Index& out, const Index& phases, const Index& steps) {
    const ValueId weights = node_.inputs[1];
    const Expr& m = out[1];
    Expr inside;
    Index at = {a_.group == 1 ? var("rc") : floor_div(m, Expr(mg_)) * Expr(cg_) + var("rc"),
                a_.group == 1 ? m : floor_mod(m, Expr(mg_))};
    for (size_t i = 0; i < rank(); ++i) {
      Expr k = steps[i] * Expr(a_.strides[i]) +
               floor_mod(phases[i] + Expr(a_.pads[i]), a_.strides[i]);
      inside = logical_and(inside, lt(k, Expr(kernel_[i])));
      at.push_back(k);
    }
    Expr element;
    if (b_.graph.is_constant(weights)) {
      const BufferId constant = b_.input(weights, {}, "weights");
      element = load(constant, w_type_.dtype, at);
      stages_.weights = b_.name_of(constant);
    } else {
      element = b_.element(weights, at);
    }
    return select(b_.simplified(inside), element, imm(0, w_type_.dtype));
  }

  void accumulate_guarded() {
    std::vector<Axis> axes = out_axes_;
    axes.push_back({"rc", Expr(cg_), AxisRole::reduce});
    for (size_t i = 0; i < rank(); ++i)
      axes.push_back({name("k", i), Expr(kernel_[i]), AxisRole::reduce});
    b_.declare(axes);
    Index out = variables(out_axes_), at;
    Expr inside;
    const Expr& m = out[1];
    Index w = {in_channel(out), a_.group == 1 ? m : floor_mod(m, Expr(mg_))};
    for (size_t i = 0; i < rank(); ++i) {
      Expr position = out[2 + i] + Expr(a_.pads[i]) - var(name("k", i)) * Expr(a_.dilations[i]);
      Expr pixel = b_.simplified(floor_div(position, a_.strides[i]));
      inside = logical_and(inside, eq(floor_mod(position, a_.strides[i]), Expr(0)));
      inside = logical_and(inside,
                           logical_and(le(Expr(0), pixel), lt(pixel, x_type_.shape[i + 2])));
      at.push_back(pixel);
      w.push_back(var(name("k", i)));
    }
    at.insert(at.begin(), {out[0], in_channel(out)});
    const Expr value = load(b_.input(node_.inputs[0]), x_type_.dtype, at);
    for (Expr& e : w) e = b_.simplified(e);
    finish_sum(axes, out, left(value) * widen(b_.parameter_element(node_.inputs[1], w)), inside);
  }

  void finish_sum(const std::vector<Axis>& axes, const Index& out, const Expr& product,
                  const Expr& where) {
    acc_ = b_.temp("acc", acc_type_, extents(out_axes_));
    stages_.acc = b_.stage("acc", axes, acc_, out, product, Combiner::add, imm(0, acc_type_),
                           where);
    const Loops all = loops(axes);
    stages_.sums = loops_of(out_axes_);
    stages_.channels = all[out_axes_.size()];
    stages_.taps.assign(all.begin() + static_cast<std::ptrdiff_t>(out_axes_.size()) + 1, all.end());
  }

  ConvLoops loops_of(const std::vector<Axis>& axes) const {
    if (!subpixel_) return conv_loops(loops(axes));
    ConvLoops c;
    c.image = axes[0].loop(), c.channel = axes[1].loop();
    for (size_t i = 0; i < rank(); ++i) {
      c.phases.push_back(axes[3 + 2 * i].loop());
      if (i + 1 < rank()) c.lines.push_back(axes[2 + 2 * i].loop());
      else c.row = axes[2 + 2 * i].loop();
    }
    return c;
  }

  void write_output() {
    bool has_bias = node_.inputs.size() > 2 && node_.inputs[2].valid();
    b_.define(node_.output, [this, has_bias](const Index& logical) {
      Index at = {logical[0], logical[1]};
      for (size_t i = 0; i < rank(); ++i) {
        if (subpixel_) {
          at.push_back(b_.simplified(floor_div(logical[i + 2], a_.strides[i])));
          at.push_back(b_.simplified(floor_mod(logical[i + 2], a_.strides[i])));
        } else {
          at.push_back(logical[i + 2]);
        }
      }
      Expr sum = load(acc_, acc_type_, at);
      if (has_bias) sum = sum + widen(b_.element(node_.inputs[2], {logical[1]}));
      return sum.type() == y_type_.dtype ? sum : cast(y_type_.dtype, sum);
    });
    std::vector<Axis> axes = output_axes("");
    b_.declare(axes);
    Index index = variables(axes);
    Index logical = {index[0], index[1]};
    for (size_t i = 0; i < rank(); ++i)
      logical.push_back(subpixel_ ? index[2 + 2 * i] * Expr(a_.strides[i]) + index[3 + 2 * i]
                                  : index[2 + i]);
    ValueId result = b_.output_value();
    stages_.out.y = b_.stage("y", axes, b_.output(result, extents(axes)), index,
                             b_.element(result, logical));
    stages_.out.loops = loops_of(axes);
  }

  GroupBuilder& b_;
  const Node& node_;
  op::ConvTranspose a_;
  TensorType x_type_, y_type_, w_type_;
  bool subpixel_;
  int64_t cg_, mg_, m_;
  DType acc_type_;
  Ints kernel_;
  std::vector<Axis> out_axes_;
  BufferId acc_;
  ConvStages stages_;
};

}  // namespace

Expected<Lowered<ConvStages>> define_conv_transpose(GroupBuilder& b, const Node& node) {
  TW_ASSIGN(const ConvShape shape, conv_transpose_shape(b, node));
  return TransposeLowering(b, node, shape).lower();
}

}  // namespace tw
