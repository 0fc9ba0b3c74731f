// Stages: pad (the input with zeros around it, if taps meet the padding or there are several taps),
// acc (the sums, in whole tiles of the threads), y (bias and followers). Weights are packed as
// [output channel block][input channel block][taps][input channel][output channel of the block].
#include "kernels/device/windows.h"

#include "kernels/common/integer_product.h"
#include "kernels/common/target_builder.h"
#include "kernels/conv/group.h"
#include "kernels/device/window_model.h"

namespace tw {
namespace {

constexpr int64_t kFreeImages = 1;  // assumed for a free number

class WindowConv : ConvGroup {
 public:
  WindowConv(TargetBuilder& builder, const Node& conv, ConvShape shape)
      : ConvGroup(builder, conv, std::move(shape)) {
    depthwise_ = s_.cg == 1 && s_.mg == 1 && x_type_.layout == y_type_.layout;
  }

  std::optional<Lowered<WindowStages>> lower() {
    if (pool_ || !is_float(x_type_.dtype) || acc_type_ == DType::f64 || rank() == 0)
      return std::nullopt;
    for (size_t i = 0; i < rank(); ++i)
      if (!as_const(s_.in[i]) || !as_const(s_.out[i])) return std::nullopt;
    if (!choose_tile()) return std::nullopt;
    declare_inputs();
    read_input();
    accumulate();
    stages_.out = write_output([this](const Index& at) { return load(acc_, acc_type_, at); });
    return b_.finish(std::move(stages_));
  }

 private:
  WindowAxis axis_of(size_t i) const {
    return {*as_const(s_.out[i]), *as_const(s_.in[i]), s_.kernel[i], s_.strides[i],
            s_.dilations[i]};
  }

  // Chooses the tile. A step takes as many channels of a block as fit their weights in registers.
  bool choose_tile() {
    const int64_t in_block = x_type_.layout.plain() ? 1 : x_type_.layout.block;
    std::optional<WindowTile> tile;
    step_ = !depthwise_ && s_.cg % in_block == 0 ? in_block : 1;
    for (;; step_ /= 2) {
      stages_.problem = problem();
      tile = window_tile(stages_.problem, b_.target);
      if (tile || step_ % 2 != 0) break;
    }
    if (tile) stages_.tile = *tile;
    return tile.has_value();
  }

  WindowProblem problem() const {
    WindowProblem p;
    p.images = as_const(s_.n).value_or(kFreeImages), p.inputs = p.images * s_.c;
    for (size_t i = 0; i < rank(); ++i) p.inputs *= *as_const(s_.in[i]);
    for (size_t i = 0; i + 2 < rank(); ++i)
      p.images *= *as_const(s_.out[i]), p.outer_taps *= s_.kernel[i];
    p.row = axis_of(rank() - 1);
    if (rank() > 1) p.line = axis_of(rank() - 2);
    p.channels = (s_.m + block_ - 1) / block_, p.lanes = block_;
    p.depth = s_.cg, p.step = step_;
    p.loaded = depthwise_ ? block_ : step_;
    p.bytes = dtype_bytes(x_type_.dtype), p.copied = copies_input();
    return p;
  }

  bool copies_input() const {
    bool taps = s_.padded;
    for (const int64_t k : s_.kernel) taps |= k > 1;
    return taps;
  }

  // Extent of the points along a spatial axis that have sums
  Expr summed(size_t i) const {
    const WindowTile& t = stages_.tile;
    int64_t tile = 1;  // a block's tile, or a thread's if the input is not copied
    if (i + 1 == rank()) tile = t.pixels * (copies_input() ? t.across : 1);
    else if (i + 2 == rank()) tile = t.lines * (copies_input() ? t.down : 1);
    return Expr((*as_const(s_.out[i]) + tile - 1) / tile * tile);
  }

  void read_input() {
    const ValueId x = node_.inputs[0];
    BufferId from = copies_input() ? BufferId() : b_.input(x);
    if (copies_input()) {
      Shape spatial;
      for (size_t i = 0; i < rank(); ++i)
        spatial.push_back(simplify((summed(i) - Expr(1)) * Expr(s_.strides[i]) +
                                   Expr((s_.kernel[i] - 1) * s_.dilations[i] + 1)));
      from = b_.padded(x, spatial, s_.pads_begin);
      stages_.window = b_.stage_of(from);
    }
    in_ = [this, from](const Expr& n, const Expr& channel, const Index& at) {
      return load(from, x_type_.dtype, physical(n, channel, at));
    };
  }

  void accumulate() {
    std::vector<Axis> axes = output_axes("a"), reduce;
    for (size_t i = 0; i < rank(); ++i) axes[i + 2].extent = summed(i);
    const std::vector<Axis> sums = axes;
    const Index out = variables(axes);
    const Expr channel = blocked_ ? out[1] * Expr(block_) + out.back() : out[1];
    if (s_.cg > step_) reduce.push_back({"rc", Expr(s_.cg / step_), AxisRole::reduce});
    Index at, taps;
    for (size_t i = 0; i < rank(); ++i) {
      const bool several = s_.kernel[i] > 1;
      if (several) reduce.push_back({axis("k", i), Expr(s_.kernel[i]), AxisRole::reduce});
      stages_.taps.push_back(several ? reduce.back().loop() : Loop());
      taps.push_back(several ? var(axis("k", i)) : Expr(0));
      at.push_back(out[i + 2] * Expr(s_.strides[i]) + taps[i] * Expr(s_.dilations[i]));
    }
    if (s_.cg > step_) stages_.channels = reduce.front().loop();
    if (step_ > 1) reduce.push_back({"rl", Expr(step_), AxisRole::reduce});
    if (step_ > 1) stages_.channel_lanes = reduce.back().loop();
    axes.insert(axes.end(), reduce.begin(), reduce.end());
    b_.declare(axes);
    for (Expr& e : at) e = b_.simplified(e);
    const Expr block = s_.cg > step_ ? var("rc") : Expr(0), lane = step_ > 1 ? var("rl") : Expr(0),
               first = group_of(out, channel) * Expr(s_.cg);
    const Expr from = depthwise_ ? channel : b_.simplified(first + block * Expr(step_) + lane);
    const Expr sum = number(in_(out[0], from, at)) * number(weight(out, block, taps, lane));
    acc_ = b_.temp("acc", acc_type_, extents(sums));
    stages_.acc = b_.stage("acc", axes, acc_, out, sum, Combiner::add, imm(0, acc_type_));
    stages_.sums = conv_loops(loops(sums), blocked_);
  }

  // The group of an output channel. If blocks belong to one group each, it is the same for all
  // lanes.
  Expr group_of(const Index& out, const Expr& channel) const {
    if (blocked_ && s_.mg % block_ == 0)
      return b_.simplified(floor_div(out[1], Expr(s_.mg / block_)));
    // Channels that only fill the last block up read another channel's group.
    const Expr there = s_.m % block_ == 0 ? channel : min(channel, Expr(s_.m - 1));
    return b_.simplified(floor_div(there, Expr(s_.mg)));
  }

  Expr number(const Expr& e) const {
    return multiplies_tf32(b_) ? unary(UnaryOp::tf32, e) : widen(e);
  }

  Expr weight(const Index& out, const Expr& block, const Index& taps, const Expr& lane) {
    const DType type = b_.type(node_.inputs[1]).dtype;
    std::vector<Axis> axes = {{"wc", Expr((s_.m + block_ - 1) / block_)},
                              {"wr", Expr(s_.cg / step_)}};
    for (size_t i = 0; i < rank(); ++i) axes.push_back({axis("wk", i), Expr(s_.kernel[i])});
    axes.insert(axes.end(), {{"wi", Expr(step_)}, {"wl", Expr(block_)}});
    const BufferId packed = b_.packed(node_.inputs[1], "w", axes, [&](const auto& read) {
      const Expr m = var("wc") * Expr(block_) + var("wl");
      Index at = {m, var("wr") * Expr(step_) + var("wi")};
      for (size_t i = 0; i < rank(); ++i) at.push_back(var(axis("wk", i)));
      pad_rank(at);
      return s_.m % block_ == 0 ? read(at) : select(lt(m, Expr(s_.m)), read(at), imm(0, type));
    });
    Index at = {out[1], block};
    at.insert(at.end(), taps.begin(), taps.end());
    at.insert(at.end(), {lane, blocked_ ? out.back() : Expr(0)});
    return load(packed, type, at);
  }

  bool depthwise_ = false;
  int64_t step_ = 1;  // input channels in one step of "rl"
  std::function<Expr(const Expr&, const Expr&, const Index&)> in_;
  BufferId acc_;
  WindowStages stages_;
};

}  // namespace

Expected<std::optional<Lowered<WindowStages>>> lower_conv_in_windows(TargetBuilder& b,
                                                                     const Node& node) {
  if (b.target.axes.empty()) return std::nullopt;
  TW_ASSIGN(ConvShape shape, conv_shape(b, node));
  return WindowConv(b, node, std::move(shape)).lower();
}

}  // namespace tw
