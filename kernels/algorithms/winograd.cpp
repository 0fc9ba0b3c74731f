// Winograd's convolution for 3x3 kernels of stride 1 or 2, as defined: stages over the tensors' own
// dimensions. The schedule brings their blocks and the target's instruction
// (kernels/winograd/arrange.cpp).
//
// Tiles of m x m outputs are numbered through the batch. A is the number of points, and of a tile's
// inputs, along an axis: m + 2 for stride 1, 2 m + 1 for stride 2.
//
// Stages: pad (the input with zeros around it, up to whole tiles), vr and v (input transform along
// rows, then columns), acc (A*A products of matrices over the channels), z and o (output
// transform), y (bias and followers; before a pool, conv and y). Weights become G g GT in f64 at
// compile time, and are rounded once.
//
// Operands may be bf16: v and the weights are then bf16 and everything else is f32.
#include "kernels/algorithms/winograd.h"
#include "kernels/algorithms/winograd_transform.h"
#include "kernels/common/group_builder.h"
#include "kernels/ops/conv_group.h"

namespace tw {
namespace {

class WinogradLowering : ConvGroup {
 public:
  WinogradLowering(GroupBuilder& builder, const Node& conv, ConvShape shape, int tile)
      : ConvGroup(builder, conv, std::move(shape)),
        t_(winograd_transform(tile, static_cast<int>(s_.strides[0]))),
        m_(tile),
        a_(t_.points) {
    step_ = m_ * s_.strides[0];
    th_ = (*as_const(s_.out[0]) + m_ - 1) / m_;
    tw_ = (*as_const(s_.out[1]) + m_ - 1) / m_;
    tiles_ = *as_const(s_.n) * th_ * tw_;
  }

  Lowered<WinogradStages> lower() {
    BufferId padded = b_.padded(node_.inputs[0],
                                {Expr((th_ - 1) * step_ + a_), Expr((tw_ - 1) * step_ + a_)},
                                s_.pads_begin);
    stages_.pad = b_.stage_of(padded);
    stages_.input = b_.name_of(b_.input(node_.inputs[0]));
    BufferId rows = transform_rows(padded);
    BufferId v = transform_columns(rows);
    BufferId products = multiply(v);
    BufferId o = transform_output(products);
    stages_.out = write_output([this, o](const Index& at) {
      const Expr &h = at[2], &w = at[3];
      Expr tile = (at[0] * Expr(th_) + floor_div(h, Expr(m_))) * Expr(tw_) + floor_div(w, Expr(m_));
      return load(o, DType::f32,
                  {b_.simplified(tile), at[1], b_.simplified(floor_mod(h, Expr(m_))),
                   b_.simplified(floor_mod(w, Expr(m_)))});
    });
    stages_.bias = bias_parameter();
    stages_.out_block = b_.type(b_.output_value()).layout.block;
    Lowered<WinogradStages> lowered = b_.finish(std::move(stages_));
    lowered.kernel.name += "_f" + std::to_string(m_);
    return lowered;
  }

 private:
  std::vector<Expr> loads(BufferId buffer, const std::function<Index(const Expr&)>& at) const {
    return point_loads(b_, buffer, a_, at);
  }

  BufferId transform_rows(BufferId padded) {
    const std::vector<Axis> axes = {
        {"rp", Expr(tiles_)}, {"rc", Expr(s_.c)}, {"ra", Expr(a_)}, {"rw", Expr(a_)}};
    b_.declare(axes);
    Index at = variables(axes);
    Index tile = unflatten_index({s_.n, Expr(th_), Expr(tw_)}, at[0]);
    std::vector<Expr> d = loads(padded, [&](const Expr& i) {
      return Index{tile[0], at[1], tile[1] * Expr(step_) + i, tile[2] * Expr(step_) + at[3]};
    });
    BufferId buffer = b_.temp("vr", DType::f32, extents(axes));
    const Stage stage = b_.stage("vr", axes, buffer, at, select_row(at[2], linear_rows(t_.bt, d)));
    stages_.rows = along(stage, axes, 2);
    return buffer;
  }

  BufferId transform_columns(BufferId rows) {
    const std::vector<Axis> axes = {
        {"vp", Expr(tiles_)}, {"vc", Expr(s_.c)}, {"va", Expr(a_)}, {"vb", Expr(a_)}};
    b_.declare(axes);
    Index at = variables(axes);
    std::vector<Expr> d = loads(rows, [&](const Expr& i) { return Index{at[0], at[1], at[2], i}; });
    BufferId buffer = b_.temp("v", x_type_.dtype, {Expr(a_), Expr(a_), Expr(s_.c), Expr(tiles_)});
    const Stage stage = b_.stage("v", axes, buffer, {at[2], at[3], at[1], at[0]},
                                 in_type(x_type_.dtype, select_row(at[3], linear_rows(t_.bt, d))));
    stages_.columns = along(stage, axes, 3);
    return buffer;
  }

  BufferId multiply(BufferId v) {
    std::vector<Axis> axes = {
        {"aa", Expr(a_)}, {"ab", Expr(a_)}, {"ap", Expr(tiles_)}, {"ac", Expr(s_.m)}};
    Index at = variables(axes);
    BufferId buffer = b_.temp("acc", DType::f32, extents(axes));
    axes.push_back({"kc", Expr(s_.c), AxisRole::reduce});
    b_.declare(axes);
    const Expr value = widen(load(v, b_.dtype_of(v), {at[0], at[1], var("kc"), at[2]})) *
                       widen(transformed_weight(at, var("kc")));
    WinogradStages& m = stages_;
    m.acc = b_.stage("acc", axes, buffer, at, value, Combiner::add, imm(0, DType::f32));
    const Loops l = loops(axes);
    m.acc_row = l[0], m.acc_column = l[1], m.acc_tile = l[2], m.acc_block = l[3];
    m.depth_block = l[4];
    return buffer;
  }

  // The weight of point [aa, ab] from channel c
  Expr transformed_weight(const Index& at, const Expr& c) {
    const DType dtype = b_.type(node_.inputs[1]).dtype;
    const BufferId weights = b_.input(node_.inputs[1], {}, "weights");
    return in_type(dtype, transformed_taps(t_.g, at[0], at[1], [&](int64_t i, int64_t j) {
                     return load(weights, dtype, {at[3], c, Expr(i), Expr(j)});
                   }));
  }

  BufferId transform_output(BufferId products) {
    std::vector<Axis> axes = {
        {"zp", Expr(tiles_)}, {"zc", Expr(s_.m)}, {"zi", Expr(m_)}, {"zb", Expr(a_)}};
    b_.declare(axes);
    Index at = variables(axes);
    std::vector<Expr> d = loads(products,
                                [&](const Expr& a) { return Index{a, at[3], at[0], at[1]}; });
    BufferId z = b_.temp("z", DType::f32, extents(axes));
    Stage stage = b_.stage("z", axes, z, at, select_row(at[2], linear_rows(t_.at, d)));
    stages_.out_rows = along(stage, axes, 2);

    axes = {{"op", Expr(tiles_)}, {"oc", Expr(s_.m)}, {"oi", Expr(m_)}, {"oj", Expr(m_)}};
    b_.declare(axes);
    at = variables(axes);
    d = loads(z, [&](const Expr& b) { return Index{at[0], at[1], at[2], b}; });
    BufferId o = b_.temp("o", DType::f32, extents(axes));
    stage = b_.stage("o", axes, o, at, select_row(at[3], linear_rows(t_.at, d)));
    stages_.out_columns = along(stage, axes, 3);
    return o;
  }

  // axes: tile, channel, and the two axes of a tile
  static WinogradStages::Transform along(const Stage& stage, const std::vector<Axis>& axes,
                                         size_t axis) {
    return {stage, axes[0].loop(), axes[1].loop(), axes[5 - axis].loop(), axes[axis].loop(),
            Loop()};
  }

  static Expr in_type(DType type, const Expr& e) { return e.type() == type ? e : cast(type, e); }

  WinogradStages stages_;
  WinogradTransform t_;
  int64_t m_, a_, step_ = 0, th_, tw_, tiles_;
};

}  // namespace

Expected<Lowered<WinogradStages>> define_winograd(GroupBuilder& b, const Node& node, int tile) {
  TW_ASSIGN(const ConvShape shape, conv_shape(b, node));
  return WinogradLowering(b, node, shape, tile).lower();
}

}  // namespace tw
