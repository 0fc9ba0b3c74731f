// Winograd's convolution for 3x3 kernels of stride 1 or 2, f32. The schedule brings the blocks of
// its tensors (arrange.cpp), unless an instruction sums channels or the last block is not full.
//
// Tiles of m x m outputs are numbered through the batch. A is the number of points, and of a tile's
// inputs, along an axis: m + 2 for stride 1, 2 m + 1 for stride 2. The input may have blocks of
// another size (C).
//
// Stages: pad (the input with zeros around it, up to whole tiles), vr and v (input transform along
// rows, then columns), acc (A*A products of matrices over the channels), z and o (output
// transform), y (bias and followers; before a pool, conv and y). Weights become G g GT in f64 at
// compile time, are rounded once, and packed (arrange.cpp).
//
// An instruction of the target multiplies operands in bf16. v and the weights are then bf16 and
// everything else is f32.
#include "kernels/common/target_builder.h"
#include "kernels/conv/group.h"
#include "kernels/winograd/transform.h"
#include "kernels/winograd/winograd.h"

namespace tw {
namespace {

class WinogradLowering : ConvGroup {
 public:
  WinogradLowering(TargetBuilder& builder, const Node& conv, ConvShape shape, int tile)
      : ConvGroup(builder, conv, std::move(shape)),
        t_(winograd_transform(tile, static_cast<int>(s_.strides[0]))),
        m_(tile),
        a_(t_.points),
        product_(winograd_product(b_.graph, conv, b_.target)) {
    step_ = m_ * s_.strides[0];
    th_ = (*as_const(s_.out[0]) + m_ - 1) / m_;
    tw_ = (*as_const(s_.out[1]) + m_ - 1) / m_;
    tiles_ = *as_const(s_.n) * th_ * tw_;
    in_block_ = std::max<int64_t>(1, x_type_.layout.block);  // a plain layout has block 0
    in_blocks_ = (s_.c + in_block_ - 1) / in_block_;
    out_blocks_ = (s_.m + block_ - 1) / block_;
  }

  // True: the schedule can bring the blocks of the tensors to the same stages without them.
  bool has_definition() const { return !product_.defined() && s_.c % in_block_ == 0; }

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
                  at_lane({b_.simplified(tile), at[1], b_.simplified(floor_mod(h, Expr(m_))),
                           b_.simplified(floor_mod(w, Expr(m_)))},
                          at));
    });
    stages_.bias = bias_parameter();
    Lowered<WinogradStages> lowered = b_.finish(std::move(stages_));
    lowered.kernel.name += "_f" + std::to_string(m_);
    return lowered;
  }

 private:
  std::vector<Expr> loads(BufferId buffer, const std::function<Index(const Expr&)>& at) const {
    return point_loads(b_, buffer, a_, at);
  }

  // Stages over a tensor in blocks have a loop over the channels of a block.
  std::vector<Axis> with_lane(std::vector<Axis> axes, const char* name, int64_t block) const {
    if (blocked_) axes.push_back({name, Expr(block)});
    return axes;
  }
  Index at_lane(Index index, const Index& at) const {
    if (blocked_) index.push_back(at.back());
    return index;
  }

  BufferId transform_rows(BufferId padded) {
    const std::vector<Axis> axes = with_lane(
        {{"rp", Expr(tiles_)}, {"rc", Expr(in_blocks_)}, {"ra", Expr(a_)}, {"rw", Expr(a_)}}, "rl",
        in_block_);
    b_.declare(axes);
    Index at = variables(axes);
    Index tile = unflatten_index({s_.n, Expr(th_), Expr(tw_)}, at[0]);
    std::vector<Expr> d = loads(padded, [&](const Expr& i) {
      return at_lane({tile[0], at[1], tile[1] * Expr(step_) + i, tile[2] * Expr(step_) + at[3]},
                     at);
    });
    BufferId buffer = b_.temp("vr", DType::f32, extents(axes));
    const Stage stage = b_.stage("vr", axes, buffer, at, select_row(at[2], linear_rows(t_.bt, d)));
    stages_.rows = along(stage, axes, 2);
    return buffer;
  }

  BufferId transform_columns(BufferId rows) {
    const std::vector<Axis> axes = with_lane(
        {{"vp", Expr(tiles_)}, {"vc", Expr(in_blocks_)}, {"va", Expr(a_)}, {"vb", Expr(a_)}}, "vl",
        in_block_);
    b_.declare(axes);
    Index at = variables(axes);
    std::vector<Expr> d = loads(
        rows, [&](const Expr& i) { return at_lane({at[0], at[1], at[2], i}, at); });
    Shape shape = {Expr(a_), Expr(a_), Expr(in_blocks_), Expr(tiles_)};
    if (blocked_) shape.emplace_back(in_block_);
    BufferId buffer = b_.temp("v", x_type_.dtype, shape);
    const Stage stage = b_.stage("v", axes, buffer, at_lane({at[2], at[3], at[1], at[0]}, at),
                                 in_type(x_type_.dtype, select_row(at[3], linear_rows(t_.bt, d))));
    stages_.columns = along(stage, axes, 3);
    return buffer;
  }

  BufferId multiply(BufferId v) {
    std::vector<Axis> axes = with_lane(
        {{"aa", Expr(a_)}, {"ab", Expr(a_)}, {"ap", Expr(tiles_)}, {"ac", Expr(out_blocks_)}}, "al",
        block_);
    Index at = variables(axes);
    BufferId buffer = b_.temp("acc", DType::f32, extents(axes));
    axes.push_back({"kc", Expr(in_blocks_), AxisRole::reduce});
    Index from = {at[0], at[1], var("kc"), at[2]};
    Expr channel = var("kc");
    if (blocked_) {
      axes.push_back({"kl", Expr(in_block_ / product_.depth), AxisRole::reduce});
      from.push_back(var("kl"));
      if (product_.depth > 1) {
        axes.push_back({"kp", Expr(product_.depth), AxisRole::reduce});
        from.back() = var("kl") * Expr(product_.depth) + var("kp");
      }
      channel = var("kc") * Expr(in_block_) + from.back();
    }
    b_.declare(axes);
    const Expr value = widen(load(v, b_.dtype_of(v), from)) *
                       widen(transformed_weight(at, channel));
    WinogradStages& m = stages_;
    m.acc = b_.stage("acc", axes, buffer, at, value, Combiner::add, imm(0, DType::f32));
    const Loops l = loops(axes);
    m.acc_row = l[0], m.acc_column = l[1], m.acc_tile = l[2], m.acc_block = l[3];
    m.depth_block = l[at.size()];
    if (blocked_) m.acc_lane = l[4], m.depth_lane = l[6];
    m.depth = product_.depth;
    if (product_.defined()) m.instruction = product_.sums(product_.depth > 1 ? l[7] : Loop());
    return buffer;
  }

  // The weight of point [aa, ab] from channel c; 0 beyond the channels
  Expr transformed_weight(const Index& at, const Expr& c) {
    const DType dtype = b_.type(node_.inputs[1]).dtype;
    const BufferId weights = b_.input(node_.inputs[1], {}, "weights");
    const Expr m = blocked_ ? at[3] * Expr(block_) + at[4] : at[3];
    const Expr value = transformed_taps(t_.g, at[0], at[1], [&](int64_t i, int64_t j) {
      return load(weights, dtype, {m, c, Expr(i), Expr(j)});
    });
    return select(logical_and(lt(m, Expr(s_.m)), lt(c, Expr(s_.c))), in_type(dtype, value),
                  imm(0, dtype));
  }

  BufferId transform_output(BufferId products) {
    std::vector<Axis> axes = with_lane(
        {{"zp", Expr(tiles_)}, {"zc", Expr(out_blocks_)}, {"zi", Expr(m_)}, {"zb", Expr(a_)}}, "zl",
        block_);
    b_.declare(axes);
    Index at = variables(axes);
    std::vector<Expr> d = loads(
        products, [&](const Expr& a) { return at_lane({a, at[3], at[0], at[1]}, at); });
    BufferId z = b_.temp("z", DType::f32, extents(axes));
    Stage stage = b_.stage("z", axes, z, at, select_row(at[2], linear_rows(t_.at, d)));
    stages_.out_rows = along(stage, axes, 2);

    axes = with_lane(
        {{"op", Expr(tiles_)}, {"oc", Expr(out_blocks_)}, {"oi", Expr(m_)}, {"oj", Expr(m_)}}, "ol",
        block_);
    b_.declare(axes);
    at = variables(axes);
    d = loads(z, [&](const Expr& b) { return at_lane({at[0], at[1], at[2], b}, at); });
    BufferId o = b_.temp("o", DType::f32, extents(axes));
    stage = b_.stage("o", axes, o, at, select_row(at[3], linear_rows(t_.at, d)));
    stages_.out_columns = along(stage, axes, 3);
    return o;
  }

  // axes: tile, block, the two axes of a tile and, over blocks, lane.
  static WinogradStages::Transform along(const Stage& stage, const std::vector<Axis>& axes,
                                         size_t axis) {
    return {stage,
            axes[0].loop(),
            axes[1].loop(),
            axes[5 - axis].loop(),
            axes[axis].loop(),
            axes.size() > 4 ? axes[4].loop() : Loop()};
  }

  static Expr in_type(DType type, const Expr& e) { return e.type() == type ? e : cast(type, e); }

  WinogradStages stages_;
  WinogradTransform t_;
  int64_t m_, a_, step_ = 0, th_, tw_, tiles_, in_block_, in_blocks_, out_blocks_;
  IntegerProduct product_;
};

}  // namespace

// Tiles of the image are rows of the products, one for each instruction.
IntegerProduct winograd_product(const Graph& graph, const Node& node, const Target& target) {
  const TensorType &x = graph.value(node.inputs[0]).type, &w = graph.value(node.inputs[1]).type,
                   &y = graph.value(node.output).type;
  if (x.dtype != DType::bf16 || x.layout.plain() || y.layout.plain()) return {};
  return integer_product(target, {x.dtype, 0}, w.dtype, {y.layout.block, x.layout.block, 1});
}

// Two vectors fill the registers with tall tiles and keep the products of a block small. With few
// tiles, more vectors are needed.
int64_t winograd_vectors(int64_t blocks, int64_t tiles, const Target& target) {
  constexpr int64_t kFewestProducts = 8;
  for (int64_t vectors : {2, 3, 4})
    if (blocks % vectors == 0 && tiles * vectors >= kFewestProducts &&
        3 * vectors < target.vector_registers)
      return vectors;
  return blocks % 2 == 0 ? 2 : 1;
}

bool winograd_applies(const Graph& graph, const Node& node, const Target& target) {
  const auto* conv = std::get_if<op::Conv>(&node.attrs);
  if (!conv || conv->group != 1) return false;
  const TensorType &x = graph.value(node.inputs[0]).type, &w = graph.value(node.inputs[1]).type,
                   &y = graph.value(node.output).type;
  if (x.shape.size() != 4 || x.dtype != w.dtype || y.dtype != DType::f32) return false;
  // Transformed numbers could exceed the range of f16.
  if (x.dtype != DType::f32 && x.dtype != DType::bf16) return false;
  for (const TensorType* t : {&x, &w, &y})
    for (const Expr& extent : t->shape)
      if (!as_const(extent)) return false;
  for (size_t i = 0; i < 2; ++i)
    if (!is_const(w.shape[i + 2], 3) || conv->strides[i] > 2 ||
        conv->strides[i] != conv->strides[0] || conv->dilations[i] != 1)
      return false;
  if (target.axes.empty() && (x.layout.plain() || y.layout.plain())) return false;
  if (x.dtype == DType::bf16 &&
      !(target.axes.empty() && winograd_product(graph, node, target).defined()))
    return false;
  return graph.is_constant(node.inputs[1]);
}

Expected<Lowered<WinogradStages>> lower_winograd(TargetBuilder& b, const Node& node, int tile) {
  TW_ASSIGN(const ConvShape shape, conv_shape(b, node));
  return lower_as_defined<WinogradLowering>(b, node, shape, tile);
}

}  // namespace tw
