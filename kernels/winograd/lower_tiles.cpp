// Winograd's convolution on a device whose blocks of threads share memory. Stages: vr and v (input
// transform along rows, then columns, v [A][A][channel][tile]), the products of all points in tiles
// (kernels/device/tiles.h; rows are tiles and columns are output channels), z and o (output
// transform), y (bias and followers). Each thread transforms one tile of one channel. Neighbouring
// threads have neighbouring elements of v and of the products.
#include "kernels/common/target_builder.h"
#include "kernels/conv/group.h"
#include "kernels/device/tiles.h"
#include "kernels/winograd/transform.h"
#include "kernels/winograd/winograd.h"

namespace tw {
namespace {

// Limit of a tile's points, which are in a thread's registers during the transform
constexpr int64_t kMostPoints = 81;

// Tiles along an axis of the output
int64_t tiles_of(const Expr& extent, int64_t tile) { return (*as_const(extent) + tile - 1) / tile; }

class WinogradInTiles : ConvGroup {
 public:
  WinogradInTiles(TargetBuilder& builder, const Node& conv, ConvShape shape, int tile)
      : ConvGroup(builder, conv, std::move(shape)),
        t_(winograd_transform(tile, static_cast<int>(s_.strides[0]))),
        m_(tile),
        a_(t_.points),
        th_(tiles_of(s_.out[0], tile)),
        tw_(tiles_of(s_.out[1], tile)),
        tiles_(*as_const(s_.n) * th_ * tw_),
        channels_((s_.m + block_ - 1) / block_ * block_) {}

  Lowered<WinogradTileStages> lower(const BlockTile& tile) {
    stages_.tile = m_;
    const BufferId v = transform_columns(transform_rows());
    const TiledSums products = multiply(v, tile);
    stages_.products = products.stages;
    const BufferId o = transform_output(products);
    stages_.out = write_output([this, o](const Index& at) {
      const Expr &h = at[2], &w = at[3], channel = blocked_ ? at[1] * Expr(block_) + at[4] : at[1];
      const Expr tile = (at[0] * Expr(th_) + floor_div(h, Expr(m_))) * Expr(tw_) +
                        floor_div(w, Expr(m_));
      return load(o, DType::f32,
                  {b_.simplified(tile), b_.simplified(channel),
                   b_.simplified(floor_mod(h, Expr(m_))), b_.simplified(floor_mod(w, Expr(m_)))});
    });
    Lowered<WinogradTileStages> lowered = b_.finish(std::move(stages_));
    lowered.kernel.name += "_f" + std::to_string(m_);
    return lowered;
  }

 private:
  std::vector<Expr> loads(BufferId buffer, const std::function<Index(const Expr&)>& at) const {
    return point_loads(b_, buffer, a_, at);
  }

  // Element [row, column] of a tile's patch, with zeros around the image
  Expr input_element(const Index& tile, const Expr& channel, const Expr& row, const Expr& column) {
    const Expr step(m_ * s_.strides[0]);
    const Index at = {b_.simplified(tile[1] * step + row - Expr(s_.pads_begin[0])),
                      b_.simplified(tile[2] * step + column - Expr(s_.pads_begin[1]))};
    Expr inside;
    for (size_t i = 0; i < 2; ++i)
      inside = logical_and(inside, logical_and(le(Expr(0), at[i]), lt(at[i], s_.in[i])));
    Index index = physical(b_.simplified(tile[0]), channel, at);
    for (Expr& e : index) e = b_.simplified(e);
    const Expr element = load(b_.input(node_.inputs[0]), DType::f32, index);
    const Expr there = b_.simplified(inside);
    return is_const(there, 1) ? element : select(there, element, imm(0, DType::f32));
  }

  BufferId transform_rows() {
    const std::vector<Axis> axes = {
        {"rc", Expr(s_.c)}, {"rp", Expr(tiles_)}, {"ra", Expr(a_)}, {"rw", Expr(a_)}};
    b_.declare(axes);
    const Index at = variables(axes), tile = unflatten_index({s_.n, Expr(th_), Expr(tw_)}, at[1]);
    std::vector<Expr> d;
    for (int64_t i = 0; i < a_; ++i) d.push_back(input_element(tile, at[0], Expr(i), at[3]));
    const BufferId buffer = b_.temp("vr", DType::f32, extents(axes));
    const Stage stage = b_.stage("vr", axes, buffer, at, select_row(at[2], linear_rows(t_.bt, d)));
    stages_.rows = {stage, axes[1].loop(), axes[0].loop(), axes[3].loop(), axes[2].loop(), {}};
    return buffer;
  }

  BufferId transform_columns(BufferId rows) {
    const std::vector<Axis> axes = {
        {"vc", Expr(s_.c)}, {"vp", Expr(tiles_)}, {"va", Expr(a_)}, {"vb", Expr(a_)}};
    b_.declare(axes);
    const Index at = variables(axes);
    const std::vector<Expr> d = loads(rows,
                                      [&](const Expr& i) { return Index{at[0], at[1], at[2], i}; });
    const BufferId buffer = b_.temp("v", DType::f32,
                                    {Expr(a_), Expr(a_), Expr(s_.c), Expr(tiles_)});
    const Stage stage = b_.stage("v", axes, buffer, {at[2], at[3], at[0], at[1]},
                                 select_row(at[3], linear_rows(t_.bt, d)));
    stages_.columns = {stage, axes[1].loop(), axes[0].loop(), axes[2].loop(), axes[3].loop(), {}};
    return buffer;
  }

  TiledSums multiply(BufferId v, const BlockTile& tile) {
    TiledProduct p;
    p.tile = tile;
    p.batch = {Expr(a_), Expr(a_)};
    p.rows = Expr(tiles_), p.columns = s_.m, p.depth = s_.c;
    p.left = [&](const Index& point, const Expr& row, const Expr& k) {
      return load(v, DType::f32, {point[0], point[1], k, row});
    };
    p.right = node_.inputs[1];
    p.right_made = [&](const auto& read, const Index& point, const Expr& k, const Expr& column) {
      return transformed_taps(t_.g, point[0], point[1], [&](int64_t i, int64_t j) {
        return read({column, k, Expr(i), Expr(j)});
      });
    };
    p.made_together = true, p.stored = true;
    return add_tiled_sums(b_, p);
  }

  BufferId transform_output(const TiledSums& products) {
    std::vector<Axis> axes = {
        {"zp", Expr(tiles_)}, {"zc", Expr(channels_)}, {"zi", Expr(m_)}, {"zb", Expr(a_)}};
    b_.declare(axes);
    Index at = variables(axes);
    // Channels that only fill the last block repeat another channel. y leaves them out.
    const Expr channel = channels_ == s_.m ? at[1] : min(at[1], Expr(s_.m - 1));
    std::vector<Expr> d;
    for (int64_t i = 0; i < a_; ++i)
      d.push_back(products.element({Expr(i), at[3], at[0], channel}));
    const BufferId z = b_.temp("z", DType::f32, extents(axes));
    Stage stage = b_.stage("z", axes, z, at, select_row(at[2], linear_rows(t_.at, d)));
    stages_.out_rows = {stage, axes[0].loop(), axes[1].loop(), axes[3].loop(), axes[2].loop(), {}};

    axes = {{"op", Expr(tiles_)}, {"oc", Expr(channels_)}, {"oi", Expr(m_)}, {"oj", Expr(m_)}};
    b_.declare(axes);
    at = variables(axes);
    d = loads(z, [&](const Expr& i) { return Index{at[0], at[1], at[2], i}; });
    const BufferId o = b_.temp("o", DType::f32, extents(axes));
    stage = b_.stage("o", axes, o, at, select_row(at[3], linear_rows(t_.at, d)));
    stages_.out_columns = {stage,          axes[0].loop(), axes[1].loop(),
                           axes[2].loop(), axes[3].loop(), {}};
    return o;
  }

  WinogradTileStages stages_;
  WinogradTransform t_;
  int64_t m_, a_, th_, tw_, tiles_;
  int64_t channels_;  // output channels in whole blocks of the layout
};

}  // namespace

std::optional<TileProblem> winograd_tile_problem(const Graph& graph, const Node& node, int tile) {
  const Shape &y = graph.value(node.output).type.shape, &w = graph.value(node.inputs[1]).type.shape;
  const auto stride = static_cast<int>(std::get<op::Conv>(node.attrs).strides[0]);
  const int64_t a = winograd_transform(tile, stride).points;
  if (a * a > kMostPoints) return std::nullopt;
  TileProblem problem;
  problem.batches = a * a;
  problem.rows = *as_const(y[0]) * tiles_of(y[2], tile) * tiles_of(y[3], tile);
  problem.columns = *as_const(w[0]), problem.depth = *as_const(w[1]);
  problem.between = true;
  return problem;
}

Expected<Lowered<WinogradTileStages>> lower_winograd_in_tiles(TargetBuilder& b, const Node& node,
                                                              int tile) {
  TW_ASSIGN(ConvShape shape, conv_shape(b, node));
  const auto problem = winograd_tile_problem(b.graph, node, tile);
  const auto products = problem ? block_tile(b.target, *problem) : std::nullopt;
  if (!products)
    return make_error(DiagCode::unsupported,
                      "conv (node {0}): device '{1}' has no tiles for winograd_f{2}", node.name,
                      b.target.name, tile);
  return WinogradInTiles(b, node, std::move(shape), tile).lower(*products);
}

}  // namespace tw
