// Convolution over any number of spatial axes.
// Stages: pad (the zero-padded input, where padding is too wide to be skipped tap by tap), acc (the sums), y (bias, followers).
// Blocked output (NCHWc): weights packed [oc/(V*B)][ic blocks][kernel...][B][V*B] ([oc/(V*B)][kernel...][ic][V*B] of a plain input) with V by the register tile, a divisor
// of the block count; depthwise [c/B][kernel...][B]. Plain output: weights as they are, vectors run along the last spatial axis.
// 1x1 convolutions with stride 1 see their spatial axes as one.
#include <algorithm>

#include "passes/lower/builder.h"
#include "passes/lower/register_tile.h"

namespace tw {
namespace {

constexpr int64_t kWidestEdge = 16;   // output pixels at a row's end whose taps reach into the padding

struct ConvShape {
  int64_t group, c, m, cg, mg;        // channels in and out, and per group
  Ints kernel, strides, dilations, pads_begin;
  Shape in, out;                      // spatial extents
  Expr n;
  bool padded = false, pointwise = true;
};

Expected<ConvShape> conv_shape(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::Conv>(node.attrs);
  const TensorType& x = b.type(node.inputs[0]);
  const TensorType& w = b.type(node.inputs[1]);
  const TensorType& y = b.type(node.output);
  ConvShape s;
  auto c = as_const(x.shape[1]), m = as_const(w.shape[0]);
  if (!c || !m)
    return make_error(DiagCode::unsupported, "conv (node {0}): the channel count is symbolic; bind it with --dim", node.name);
  s.group = a.group;
  s.c = *c;
  s.m = *m;
  s.cg = s.c / s.group;
  s.mg = s.m / s.group;
  s.n = x.shape[0];
  size_t rank = x.shape.size() - 2;
  for (size_t i = 0; i < rank; ++i) {
    auto k = as_const(w.shape[i + 2]);
    if (!k) return make_error(DiagCode::unsupported, "conv (node {0}): the kernel size is symbolic", node.name);
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

// Spatial axes of the group's tensors become one: pointwise convolutions need no rows.
Shape collapsed(const TensorType& t, const Expr& pixels) {
  Shape shape = {t.shape[0], t.layout.plain() ? t.shape[1] : physical_shape(t)[1], pixels};
  if (!t.layout.plain()) shape.push_back(Expr(t.layout.block));
  return shape;
}

class ConvLowering {
 public:
  ConvLowering(GroupBuilder& builder, const Node& conv, ConvShape conv_shape_in)
      : b_(builder), node_(conv), s_(std::move(conv_shape_in)), x_type_(b_.type(conv.inputs[0])), y_type_(b_.type(conv.output)),
        blocked_(!y_type_.layout.plain()), block_(blocked_ ? y_type_.layout.block : 1),
        acc_type_(accumulator_type(y_type_.dtype)) {
    depthwise_ = s_.group > 1 && s_.cg == 1 && s_.mg == 1 && blocked_ && x_type_.layout == y_type_.layout;
    if (s_.pointwise) {
      pixels_ = simplify(element_count(s_.out));
      s_.in = s_.out = {pixels_};
      s_.kernel = s_.strides = s_.dilations = {1};
      s_.pads_begin = {0};
    }
  }

  LoweredGroup lower() {
    declare_inputs();
    read_input();
    accumulate();
    write_output();
    return b_.finish(depthwise_ ? KernelFamily::depthwise : KernelFamily::conv);
  }

 private:
  size_t rank() const { return s_.kernel.size(); }
  std::string axis(const char* prefix, size_t i) const { return prefix + std::to_string(i); }

  void declare_inputs() {
    if (!s_.pointwise) return;
    for (NodeId id : b_.group.nodes)
      for (ValueId v : b_.graph.node(id).inputs) {
        if (!v.valid() || b_.graph.is_constant(v)) continue;
        const TensorType& t = b_.type(v);
        if (b_.inside(v) || t.shape.size() != y_type_.shape.size()) continue;
        if (is_const(simplify(element_count(Shape(t.shape.begin() + 2, t.shape.end())) - pixels_), 0)) b_.input(v, collapsed(t, pixels_));
      }
  }

  // in_(n, channel, spatial...) is the element of the input, at positions of the padded one.
  void read_input() {
    ValueId x = node_.inputs[0];
    if (!copies_input()) {
      BufferId buffer = b_.input(x);
      in_ = [this, buffer](const Expr& n, const Expr& channel, const Index& at) {
        Index from = at;
        for (size_t i = 0; i < rank(); ++i) from[i] = b_.simplified(at[i] - Expr(s_.pads_begin[i]));
        return load(buffer, x_type_.dtype, physical(n, channel, from));
      };
      return;
    }
    Shape shape = {s_.n, x_type_.layout.plain() ? Expr(s_.c) : physical_shape(x_type_)[1]};
    for (size_t i = 0; i < rank(); ++i)
      shape.push_back(simplify((s_.out[i] - Expr(1)) * Expr(s_.strides[i]) + Expr((s_.kernel[i] - 1) * s_.dilations[i] + 1)));
    if (!x_type_.layout.plain()) shape.push_back(Expr(x_type_.layout.block));
    std::vector<Axis> axes;
    Index index;
    for (size_t i = 0; i < shape.size(); ++i) {
      axes.push_back({axis("p", i), shape[i]});
      index.push_back(var(axes.back().name));
    }
    b_.declare(axes);
    Index from = index;
    Expr inside;
    for (size_t i = 0; i < rank(); ++i) {
      from[i + 2] = b_.simplified(index[i + 2] - Expr(s_.pads_begin[i]));
      inside = logical_and(inside, logical_and(le(Expr(0), from[i + 2]), lt(from[i + 2], s_.in[i])));
    }
    Expr value = load(b_.input(x), x_type_.dtype, from);
    BufferId padded = b_.temp("xp", x_type_.dtype, shape);
    b_.stage("pad", axes, padded, index, select(inside, value, imm(0, x_type_.dtype)));
    in_ = [this, padded](const Expr& n, const Expr& channel, const Index& at) { return load(padded, x_type_.dtype, physical(n, channel, at)); };
  }

  Index physical(const Expr& n, const Expr& channel, const Index& at) const {
    Index index = {n, channel};
    index.insert(index.end(), at.begin(), at.end());
    if (x_type_.layout.plain()) return index;
    index[1] = b_.simplified(floor_div(channel, x_type_.layout.block));
    index.push_back(b_.simplified(floor_mod(channel, x_type_.layout.block)));
    return index;
  }

  // Axes of a tensor of the output's physical shape, named with a prefix: n, c, s0.., l (the lane).
  std::vector<Axis> output_axes(const std::string& prefix) const {
    std::vector<Axis> axes = {{prefix + "n", s_.n}, {prefix + "c", blocked_ ? Expr((s_.m + block_ - 1) / block_) : Expr(s_.m)}};
    for (size_t i = 0; i < rank(); ++i) axes.push_back({prefix + "s" + std::to_string(i), s_.out[i]});
    if (blocked_) axes.push_back({prefix + "l", Expr(block_)});
    return axes;
  }

  void accumulate() {
    std::vector<Axis> axes = output_axes("a");
    Index out = variables(axes);
    Expr channel = blocked_ ? out[1] * Expr(block_) + out.back() : out[1];
    std::vector<Axis> reduce;
    bool in_blocked = !x_type_.layout.plain();
    bool block_axes = in_blocked && !depthwise_ && (s_.group == 1 || s_.cg % x_type_.layout.block == 0);
    Expr rc(0);
    if (!depthwise_) {
      if (block_axes) {
        reduce.push_back({"rc", Expr((s_.cg + x_type_.layout.block - 1) / x_type_.layout.block), AxisRole::reduce});
        rc = var("rc") * Expr(x_type_.layout.block) + var("rl");
      } else {
        reduce.push_back({"rc", Expr(s_.cg), AxisRole::reduce});
        rc = var("rc");
      }
    }
    Index at, taps;
    for (size_t i = 0; i < rank(); ++i) {
      if (s_.kernel[i] > 1) reduce.push_back({axis("k", i), Expr(s_.kernel[i]), AxisRole::reduce});
      taps.push_back(s_.kernel[i] > 1 ? var(axis("k", i)) : Expr(0));
      at.push_back(out[i + 2] * Expr(s_.strides[i]) + taps[i] * Expr(s_.dilations[i]));
    }
    if (block_axes) reduce.push_back({"rl", Expr(x_type_.layout.block), AxisRole::reduce});
    axes.insert(axes.end(), reduce.begin(), reduce.end());
    b_.declare(axes);
    Expr weight = depthwise_ ? depthwise_weight(out, taps) : blocked_ ? packed_weight(out, rc, taps, block_axes) : plain_weight(out, rc, taps);
    Expr group_base = s_.group == 1 ? Expr(0) : depthwise_ ? channel : floor_div(channel, Expr(s_.mg)) * Expr(s_.cg);
    for (Expr& e : at) e = b_.simplified(e);
    // All lanes of a block are of one group (or the block is a channel of its own), so the input's channel is uniform.
    Expr value = in_(out[0], depthwise_ ? channel : b_.simplified(group_base + rc), at);
    acc_ = b_.temp("acc", acc_type_, extents(output_axes("a")));
    b_.stage("acc", axes, acc_, out, widen(value) * widen(weight), Combiner::add, imm(0, acc_type_), copies_input() ? Expr() : inside(at));
  }

  // Taps in the padding contribute nothing. A copy with the padding in place pays only where the edges are so wide that the
  // tiles at a row's ends could not be made apart (autotune/spaces/conv.cpp).
  bool copies_input() const { return s_.padded && s_.pads_begin.back() > kWidestEdge * s_.strides.back(); }

  Expr inside(const Index& padded_position) const {
    Expr all;
    for (size_t i = 0; i < rank(); ++i) {
      Expr from = padded_position[i] - Expr(s_.pads_begin[i]);
      all = logical_and(all, logical_and(le(Expr(0), from), lt(from, s_.in[i])));
    }
    return all;
  }

  Expr widen(const Expr& e) const { return e.type() == acc_type_ ? e : cast(acc_type_, e); }

  Expr depthwise_weight(const Index& out, const Index& taps) {
    std::vector<Axis> axes = {{"wc", Expr((s_.m + block_ - 1) / block_)}};
    for (size_t i = 0; i < rank(); ++i) axes.push_back({axis("wk", i), Expr(s_.kernel[i])});
    axes.push_back({"wl", Expr(block_)});
    BufferId buffer = b_.packed(node_.inputs[1], "w", axes, [&](const auto& read) {
      Expr m = var("wc") * Expr(block_) + var("wl");
      Index at = {m, Expr(0)};
      for (size_t i = 0; i < rank(); ++i) at.push_back(var(axis("wk", i)));
      pad_rank(at);
      return select(lt(m, Expr(s_.m)), read(at), imm(0, b_.type(node_.inputs[1]).dtype));
    });
    Index at = {out[1]};
    at.insert(at.end(), taps.begin(), taps.end());
    at.push_back(out.back());
    return load(buffer, b_.type(node_.inputs[1]).dtype, at);
  }

  Expr packed_weight(const Index& out, const Expr& rc, const Index& taps, bool block_axes) {
    int64_t blocks = (s_.m + block_ - 1) / block_, together = s_.group == 1 ? blocks : s_.mg % block_ == 0 ? s_.mg / block_ : 1;
    int64_t vectors = register_tile(b_.target, as_const(s_.out.back()), together).vectors;
    int64_t rl = block_axes ? x_type_.layout.block : 1;
    int64_t rows = (s_.cg + rl - 1) / rl;
    std::vector<Axis> axes = {{"wc", Expr(blocks / vectors)}};   // in the order in which the schedule's loops read
    if (block_axes) axes.push_back({"wr", Expr(rows)});
    for (size_t i = 0; i < rank(); ++i) axes.push_back({axis("wk", i), Expr(s_.kernel[i])});
    axes.push_back(block_axes ? Axis{"wi", Expr(rl)} : Axis{"wr", Expr(rows)});
    axes.push_back({"wl", Expr(vectors * block_)});
    DType dtype = b_.type(node_.inputs[1]).dtype;
    BufferId buffer = b_.packed(node_.inputs[1], "w", axes, [&](const auto& read) {
      Expr m = var("wc") * Expr(vectors * block_) + var("wl"), c = block_axes ? var("wr") * Expr(rl) + var("wi") : var("wr");
      Index at = {m, c};
      for (size_t i = 0; i < rank(); ++i) at.push_back(var(axis("wk", i)));
      pad_rank(at);
      return select(logical_and(lt(m, Expr(s_.m)), lt(c, Expr(s_.cg))), read(at), imm(0, dtype));
    });
    Expr c = out[1];
    Index at = {b_.simplified(floor_div(c, Expr(vectors)))};
    if (block_axes) at.push_back(b_.simplified(floor_div(rc, Expr(rl))));
    at.insert(at.end(), taps.begin(), taps.end());
    at.push_back(block_axes ? b_.simplified(floor_mod(rc, Expr(rl))) : rc);
    at.push_back(b_.simplified(floor_mod(c, Expr(vectors)) * Expr(block_) + out.back()));
    return load(buffer, dtype, at);
  }

  Expr plain_weight(const Index& out, const Expr& rc, const Index& taps) {
    Index at = {out[1], rc};
    at.insert(at.end(), taps.begin(), taps.end());
    pad_rank(at);
    return b_.parameter_element(node_.inputs[1], at);
  }

  // The weights keep their spatial rank when the convolution's axes were collapsed: the missing taps are 0.
  void pad_rank(Index& at) const {
    while (at.size() < b_.type(node_.inputs[1]).shape.size()) at.push_back(Expr(0));
  }

  void write_output() {
    bool has_bias = node_.inputs.size() > 2 && node_.inputs[2].valid();
    BufferId bias;
    if (has_bias && blocked_)
      bias = b_.packed(node_.inputs[2], "bias", {{"bm", Expr((s_.m + block_ - 1) / block_ * block_)}}, [&](const auto& read) {
        return select(lt(var("bm"), Expr(s_.m)), read({var("bm")}), imm(0, y_type_.dtype));
      });
    b_.define(node_.output, [this, has_bias, bias](const Index& logical) {
      Index at = acc_index(logical);
      Expr sum = load(acc_, acc_type_, at);
      if (has_bias) {
        Expr value = blocked_ ? load(bias, y_type_.dtype, {logical[1]}) : b_.element(node_.inputs[2], {logical[1]});
        sum = sum + widen(value);
      }
      return sum.type() == y_type_.dtype ? sum : cast(y_type_.dtype, sum);
    });
    std::vector<Axis> axes = output_axes("");
    b_.declare(axes);
    Index index = variables(axes);
    Expr channel = b_.simplified(blocked_ ? index[1] * Expr(block_) + index.back() : index[1]);
    Index logical = {index[0], channel};
    if (s_.pointwise) {
      Index spatial = unflatten_index(Shape(y_type_.shape.begin() + 2, y_type_.shape.end()), index[2]);
      for (const Expr& e : spatial) logical.push_back(b_.simplified(e));
    } else {
      for (size_t i = 0; i < rank(); ++i) logical.push_back(index[i + 2]);
    }
    ValueId result = b_.output_value();
    Expr value = b_.element(result, logical);
    if (blocked_ && s_.m % block_ != 0) value = select(lt(channel, Expr(s_.m)), value, imm(0, value.type()));
    b_.stage("y", axes, b_.output(result, extents(axes)), index, value);
  }

  Index acc_index(const Index& logical) const {
    Index at = {logical[0], blocked_ ? b_.simplified(floor_div(logical[1], Expr(block_))) : logical[1]};
    if (s_.pointwise)
      at.push_back(b_.simplified(flatten_index(Shape(y_type_.shape.begin() + 2, y_type_.shape.end()), Index(logical.begin() + 2, logical.end()))));
    else
      at.insert(at.end(), logical.begin() + 2, logical.end());
    if (blocked_) at.push_back(b_.simplified(floor_mod(logical[1], Expr(block_))));
    return at;
  }

  GroupBuilder& b_;
  const Node& node_;
  ConvShape s_;
  TensorType x_type_, y_type_;
  bool blocked_, depthwise_ = false;
  int64_t block_;
  DType acc_type_;
  Expr pixels_;
  std::function<Expr(const Expr&, const Expr&, const Index&)> in_;
  BufferId acc_;
};

}  // namespace

Expected<LoweredGroup> lower_conv(GroupBuilder& b, const Node& node) {
  TW_ASSIGN(ConvShape shape, conv_shape(b, node));
  return ConvLowering(b, node, std::move(shape)).lower();
}

}  // namespace tw
