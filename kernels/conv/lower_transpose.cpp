// Transposed convolution as sub-pixel convolutions. The output positions o = q*s + r of phase r are
// an ordinary convolution over ceil(K/s) taps: o + p - k = s * (q + (r+p)/s - j) for k = j*s +
// (r+p) mod s. So the zeros between input pixels are never multiplied. This needs dilation 1 and
// strides that divide the output; otherwise every tap is guarded. Stages: pad, acc, y.
#include "kernels/common/integer_product.h"
#include "kernels/common/target_builder.h"
#include "kernels/conv/group.h"

namespace tw {
namespace {

class TransposeLowering {
 public:
  TransposeLowering(TargetBuilder& builder, const Node& node, const ConvShape& shape)
      : b_(builder),
        node_(node),
        a_(std::get<op::ConvTranspose>(node.attrs)),
        x_type_(b_.type_in_memory(node.inputs[0])),
        y_type_(b_.type_in_memory(node.output)),
        w_type_(b_.type(node.inputs[1])),
        blocked_(!y_type_.layout.plain()),
        block_(blocked_ ? y_type_.layout.block : 1),
        subpixel_(has_phases(shape)),
        cg_(shape.cg),
        mg_(shape.mg),
        m_(shape.m),
        acc_type_(accumulator_type(y_type_.dtype)),
        kernel_(shape.kernel) {}

  // True: the schedule can bring the blocks of the tensors to the same convolution without them.
  bool has_definition() const {
    return is_float(acc_type_) && !b_.inside(node_.inputs[1]) &&
           !is_const(element_count(w_type_.shape), 1);
  }

  Lowered<ConvStages> lower() {
    out_axes_ = output_axes("a");
    b_.declare(out_axes_);
    subpixel_ ? accumulate_subpixel() : accumulate_guarded();
    if (a_.x_zero != counted_from()) correct();
    write_output();
    stages_.input = b_.name_of(b_.input(node_.inputs[0]));
    stages_.transposed = true;
    if (!b_.laid_out) {
      stages_.groups = a_.group, stages_.group_in = cg_, stages_.group_out = mg_;
      stages_.in_block = b_.type(node_.inputs[0]).layout.block;
      stages_.out_block = b_.type(b_.output_value()).layout.block;
    }
    return b_.finish(std::move(stages_));
  }

 private:
  size_t rank() const { return kernel_.size(); }
  static std::string name(const char* prefix, size_t i) { return prefix + std::to_string(i); }
  Expr blocks() const { return Expr((m_ + block_ - 1) / block_); }

  // Axes n, c, then for each spatial axis q and r (sub-pixel) or o, then the lane
  std::vector<Axis> output_axes(const std::string& prefix) const {
    std::vector<Axis> axes = {{prefix + "n", y_type_.shape[0]}, {prefix + "c", blocks()}};
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
    if (blocked_) axes.push_back({prefix + "l", Expr(block_)});
    return axes;
  }
  Expr channel(const Index& out) const {
    return blocked_ ? out[1] * Expr(block_) + out.back() : out[1];
  }

  Expr in_channel(const Index& out) const {
    Expr base = a_.group == 1 ? Expr(0) : floor_div(channel(out), Expr(mg_)) * Expr(cg_);
    return b_.simplified(base + var("rc"));
  }
  Index x_index(const Expr& n, const Expr& c, const Index& at) const {
    Index index = {n, c};
    index.insert(index.end(), at.begin(), at.end());
    return b_.to_physical(x_type_, index);
  }
  Expr widen(const Expr& e) const { return e.type() == acc_type_ ? e : cast(acc_type_, e); }

  // The number multiplied as 0. Bytes become unsigned if the target multiplies pairs of words, of
  // which one must not be negative, and all taps of a phase are summed because the padding is in
  // the copy.
  int64_t counted_from() const {
    const bool words = subpixel_ && is_byte(x_type_.dtype) && pairs_words(b_.target) &&
                       b_.graph.is_constant(node_.inputs[1]) && b_.target.driver.empty();
    return words ? least_byte(x_type_.dtype) : a_.x_zero;
  }
  Expr left(const Expr& value) const {
    return widened_number(b_.target, value, acc_type_, counted_from());
  }

  // Makes the correction for that, by channel and phase.
  void correct() {
    Shape shape = {blocks()};
    Expr taps;
    for (size_t i = 0; i < rank(); ++i) {
      const Expr phase = var("c" + std::to_string(i + 1)), tap = var("r" + std::to_string(i + 2));
      taps = logical_and(taps, eq(floor_mod(tap, a_.strides[i]),
                                  floor_mod(phase + Expr(a_.pads[i]), a_.strides[i])));
      shape.push_back(Expr(a_.strides[i]));
    }
    Expr m = var("c0");
    if (blocked_) {
      m = min(m * Expr(block_) + var("c" + std::to_string(shape.size())), Expr(m_ - 1));
      shape.push_back(Expr(block_));
    }
    if (a_.group > 1) taps = logical_and(taps, eq(floor_div(var("r0"), cg_), floor_div(m, mg_)));
    correction_ = surplus_of_sums(b_, node_.inputs[1], acc_type_, a_.x_zero - counted_from(),
                                  {Expr(), a_.group == 1 ? m : floor_mod(m, mg_)}, shape, taps);
  }

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
    TensorType padded_type{x_type_.dtype, shape, x_type_.layout};
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
    Expr value = load(padded, x_type_.dtype, b_.to_physical(padded_type, index));
    finish_sum(axes, out, left(value) * widen(weight(out, phases, steps)), {});
  }

  // The weight; 0 if tap j of phase r is outside the kernel
  Expr weight(const Index& out, const Index& phases, const Index& steps) {
    const ValueId weights = node_.inputs[1];
    stages_.panel_blocks = !blocked_           ? 1
                           : a_.group == 1     ? (m_ + block_ - 1) / block_
                           : mg_ % block_ == 0 ? mg_ / block_
                                               : 1;
    stages_.vectors = 0;
    const Expr m = blocked_ ? out[1] * Expr(block_) + out.back() : out[1];
    Expr inside = lt(m, Expr(m_));
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
    return select(inside, element, imm(0, w_type_.dtype));
  }

  void accumulate_guarded() {
    std::vector<Axis> axes = out_axes_;
    axes.push_back({"rc", Expr(cg_), AxisRole::reduce});
    for (size_t i = 0; i < rank(); ++i)
      axes.push_back({name("k", i), Expr(kernel_[i]), AxisRole::reduce});
    b_.declare(axes);
    Index out = variables(out_axes_), at;
    Expr inside;
    Expr m = channel(out);
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
    if (blocked_ && m_ % block_ != 0) inside = logical_and(inside, lt(m, Expr(m_)));
    Expr value = load(b_.input(node_.inputs[0]), x_type_.dtype,
                      x_index(out[0], in_channel(out), at));
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
    if (!subpixel_) return conv_loops(loops(axes), blocked_);
    ConvLoops c;
    c.image = axes[0].loop(), c.channel = axes[1].loop();
    for (size_t i = 0; i < rank(); ++i) {
      c.phases.push_back(axes[3 + 2 * i].loop());
      if (i + 1 < rank()) c.lines.push_back(axes[2 + 2 * i].loop());
      else c.row = axes[2 + 2 * i].loop();
    }
    if (blocked_) c.lane = axes.back().loop();
    return c;
  }

  void write_output() {
    bool has_bias = node_.inputs.size() > 2 && node_.inputs[2].valid();
    b_.define(node_.output, [this, has_bias](const Index& logical) {
      Index at = {logical[0], b_.simplified(floor_div(logical[1], Expr(block_)))};
      for (size_t i = 0; i < rank(); ++i) {
        if (subpixel_) {
          at.push_back(b_.simplified(floor_div(logical[i + 2], a_.strides[i])));
          at.push_back(b_.simplified(floor_mod(logical[i + 2], a_.strides[i])));
        } else {
          at.push_back(logical[i + 2]);
        }
      }
      if (blocked_) at.push_back(b_.simplified(floor_mod(logical[1], Expr(block_))));
      Expr sum = load(acc_, acc_type_, at);
      if (correction_.valid()) {
        Index of = {at[1]};
        for (size_t i = 0; i < rank(); ++i) of.push_back(at[3 + 2 * i]);
        if (blocked_) of.push_back(at.back());
        sum = sum - load(correction_, acc_type_, of);
      }
      if (has_bias) sum = sum + widen(b_.element(node_.inputs[2], {logical[1]}));
      return sum.type() == y_type_.dtype ? sum : cast(y_type_.dtype, sum);
    });
    std::vector<Axis> axes = output_axes("");
    b_.declare(axes);
    Index index = variables(axes);
    Expr c = b_.simplified(channel(index));
    Index logical = {index[0], c};
    for (size_t i = 0; i < rank(); ++i)
      logical.push_back(subpixel_ ? index[2 + 2 * i] * Expr(a_.strides[i]) + index[3 + 2 * i]
                                  : index[2 + i]);
    ValueId result = b_.output_value();
    Expr value = b_.element(result, logical);
    if (blocked_ && m_ % block_ != 0) value = select(lt(c, Expr(m_)), value, imm(0, value.type()));
    stages_.out.y = b_.stage("y", axes, b_.output(result, extents(axes)), index, value);
    stages_.out.loops = loops_of(axes);
  }

  TargetBuilder& b_;
  const Node& node_;
  op::ConvTranspose a_;
  TensorType x_type_, y_type_, w_type_;
  bool blocked_;
  int64_t block_;
  bool subpixel_;
  int64_t cg_, mg_, m_;
  DType acc_type_;
  Ints kernel_;
  std::vector<Axis> out_axes_;
  BufferId acc_, correction_;
  ConvStages stages_;
};

}  // namespace

Expected<Lowered<ConvStages>> lower_conv_transpose(TargetBuilder& b, const Node& node) {
  TW_ASSIGN(const ConvShape shape, conv_transpose_shape(b, node));
  return lower_as_defined<TransposeLowering>(b, node, shape);
}

}  // namespace tw
