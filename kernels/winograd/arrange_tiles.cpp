// Arranges Winograd's convolution for a device whose blocks of threads share memory. The products
// of all points are computed in tiles (kernels/device/tiles.h): rows are tiles of the image and
// columns are output channels. Each thread transforms one tile of one channel, and neighbouring
// threads have neighbouring elements of v and of the products.
#include "kernels/algorithms/winograd_transform.h"
#include "kernels/device/tiles.h"
#include "kernels/schedule/builder.h"
#include "kernels/winograd/winograd.h"

namespace tw {
namespace {

// Limit of a tile's points, which are in a thread's registers during the transform
constexpr int64_t kMostPoints = 81;

// Tiles along an axis of the output
int64_t tiles_of(const Expr& extent, int64_t tile) { return (*as_const(extent) + tile - 1) / tile; }

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

std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const WinogradStages& m) {
  TileProblem problem;
  problem.batches = *s.extent(m.acc_row) * *s.extent(m.acc_column);
  problem.rows = s.extent(m.acc_tile);
  problem.columns = *s.extent(m.acc_block), problem.depth = *s.extent(m.depth_block);
  problem.between = true;
  return block_tile(s.target(), problem);
}

WinogradTileStages arrange_in_tiles(ScheduleBuilder& s, const WinogradStages& m,
                                    const BlockTile& tile) {
  WinogradTileStages out;
  out.rows = m.rows, out.columns = m.columns;
  out.out_rows = m.out_rows, out.out_columns = m.out_columns, out.out = m.out;
  out.tile = *s.extent(m.out_columns.along);
  s.compute_inline(m.pad);
  for (const WinogradAxisTransform* t : {&m.rows, &m.columns}) s.reorder({t->block, t->tile});
  if (const int64_t block = m.out_block; block > 0) {
    fill_bias(s, m.bias, out.out, block);
    for (const WinogradAxisTransform* t : {&m.out_rows, &m.out_columns}) s.pad(t->block, block);
    block_output(s, out.out, block);
  }
  ProductLoops p;
  p.acc = m.acc, p.batches = {m.acc_row, m.acc_column};
  p.row = m.acc_tile, p.column = m.acc_block, p.depth = m.depth_block;
  p.known = p.made_together = p.stored = true;
  out.products = arrange_product(s, p, tile);
  return out;
}

}  // namespace tw
