// Convolution over any number of spatial axes, as it is defined:
//
//   for an in images { for ac in channels { for as0 in lines { for as1 in pixels {
//     for rc in channels of the group reduce { for k0 in taps reduce { for k1 in taps reduce {
//       acc: acc[an, ac, as0, as1] += x[an, rc, as0 * 2 + k0 - 1, as1 * 2 + k1 - 1]
//                                     * weights[ac, rc, k0, k1] where that pixel exists init 0
//
// Stage y has bias and followers. Before a pool, that is stage conv, and y is the pool. The
// schedule brings blocks of channels, copies and the target's instruction
// (kernels/conv/arrange.cpp).
#include "kernels/conv/conv.h"
#include "kernels/common/group_builder.h"
#include "kernels/ops/conv_group.h"

namespace tw {
namespace {

class ConvLowering : ConvGroup {
 public:
  ConvLowering(GroupBuilder& builder, const Node& conv, ConvShape shape)
      : ConvGroup(builder, conv, std::move(shape)) {}

  Lowered<ConvStages> lower() {
    stages_.depthwise = s_.group > 1 && s_.cg == 1 && s_.mg == 1;
    declare_inputs();
    const BufferId acc = accumulate();
    stages_.out = write_output([&](const Index& at) { return load(acc, acc_type_, at); });
    stages_.bias = bias_parameter();
    describe();
    return b_.finish(std::move(stages_));
  }

 private:
  BufferId accumulate() {
    const std::vector<Axis> points = output_axes("a");
    const Index out = variables(points);
    std::vector<Axis> reduce;
    if (!stages_.depthwise) {
      reduce.push_back({"rc", Expr(s_.cg), AxisRole::reduce});
      stages_.channels = reduce.back().loop();
    }
    Index at, taps;
    for (size_t i = 0; i < rank(); ++i) {
      const bool several = s_.kernel[i] > 1;
      if (several) reduce.push_back({axis("k", i), Expr(s_.kernel[i]), AxisRole::reduce});
      stages_.taps.push_back(several ? reduce.back().loop() : Loop());
      taps.push_back(several ? var(axis("k", i)) : Expr(0));
      at.push_back(out[i + 2] * Expr(s_.strides[i]) + taps[i] * Expr(s_.dilations[i]));
    }
    std::vector<Axis> axes = points;
    axes.insert(axes.end(), reduce.begin(), reduce.end());
    b_.declare(axes);
    for (Expr& e : at) e = b_.simplified(e);
    const Expr step = stages_.depthwise ? Expr(0) : var("rc"),
               channel = s_.group == 1 ? step : floor_div(out[1], Expr(s_.mg)) * Expr(s_.cg) + step;
    const Expr left = number(input(out[0], b_.simplified(channel), at)),
               right = number(weight(out[1], step, taps));
    const BufferId acc = b_.temp("acc", acc_type_, extents(points));
    stages_.acc = b_.stage("acc", axes, acc, out,
                           less_zero(left, std::get<op::Conv>(node_.attrs).x_zero) * right,
                           Combiner::add, imm(0, acc_type_), inside(at));
    stages_.sums = conv_loops(loops(points));
    return acc;
  }

  Expr weight(const Expr& out, const Expr& in, const Index& taps) {
    Index at = {out, in};
    at.insert(at.end(), taps.begin(), taps.end());
    pad_rank(at);
    const ValueId weights = node_.inputs[1];
    return b_.inside(weights) ? b_.element(weights, at) : b_.parameter_element(weights, at);
  }

  // The input's element at a position of the padded input
  Expr input(const Expr& n, const Expr& channel, const Index& at) {
    Index from = {n, channel};
    for (size_t i = 0; i < rank(); ++i)
      from.push_back(b_.simplified(at[i] - Expr(s_.pads_begin[i])));
    return load(b_.input(node_.inputs[0]), x_type_.dtype, from);
  }

  // The condition under which a position of the padded input is in the input
  Expr inside(const Index& at) const {
    Expr all;
    for (size_t i = 0; i < rank(); ++i) {
      const Expr from = at[i] - Expr(s_.pads_begin[i]);
      all = logical_and(all, logical_and(le(Expr(0), from), lt(from, s_.in[i])));
    }
    return all;
  }

  // An operand's element in the form in which it is multiplied
  Expr number(const Expr& e) const {
    return multiplies_tf32(b_) ? unary(UnaryOp::tf32, e) : widen(e);
  }

  void describe() {
    stages_.groups = s_.group, stages_.group_in = s_.cg, stages_.group_out = s_.mg;
    stages_.in_block = b_.type(node_.inputs[0]).layout.block;
    stages_.out_block = b_.type(b_.output_value()).layout.block;
    stages_.strides = s_.strides, stages_.dilations = s_.dilations;
    stages_.pads_begin = s_.pads_begin;
    stages_.left_type = x_type_.dtype, stages_.right_type = b_.type(node_.inputs[1]).dtype;
    stages_.left_zero = std::get<op::Conv>(node_.attrs).x_zero;
    stages_.input = b_.name_of(b_.input(node_.inputs[0]));
    if (b_.graph.is_constant(node_.inputs[1]))
      stages_.weights = b_.name_of(b_.input(node_.inputs[1]));
  }

  ConvStages stages_;
};

}  // namespace

Expected<Lowered<ConvStages>> define_conv(GroupBuilder& b, const Node& node) {
  TW_ASSIGN(const ConvShape shape, conv_shape(b, node));
  return ConvLowering(b, node, shape).lower();
}

}  // namespace tw
