// Arranges products for tiles of a block whose threads share memory. Stage xt copies the left
// operand [batch.., row, step of the depth], which gathers a convolution's windows. Buffer w has
// the right operand in panels of a tile's columns: [batch.., panel, step, column]. Both hold zeros
// in the padding to whole tiles. Sums of some parts of the depth, or sums that other launches read,
// are stored to memory by a stage of their own.
#include <algorithm>

#include "kernels/conv/conv.h"
#include "kernels/device/tiles.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/builder.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

// Bytes of the buffers that the factor reads; 0: unknown
int64_t bytes_read(const ScheduleBuilder& s, const Stage& stage, Factor factor) {
  int64_t bytes = 0;
  bool known = true;
  std::vector<BufferId> seen;
  visit(s.factor_of(stage, factor), [&](const Expr& n) {
    const auto* load = as<expr::Load>(n);
    if (!load || std::ranges::find(seen, load->buffer) != seen.end()) return;
    seen.push_back(load->buffer);
    const auto own = ScheduleBuilder::bytes_of(s.kernel().buffer(load->buffer));
    known &= own.has_value(), bytes += own.value_or(0);
  });
  return known ? bytes : 0;
}

// The number of points of the loops; nullopt: unknown
std::optional<int64_t> points(const ScheduleBuilder& s, const Loops& loops) {
  int64_t count = 1;
  for (const Loop& loop : loops) {
    if (!loop.defined()) continue;
    const std::optional<int64_t> extent = s.extent(loop);
    if (!extent) return std::nullopt;
    count *= *extent;
  }
  return count;
}

std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const Stage& acc, DType left,
                                 DType right, TileProblem problem) {
  if (left != right || !s.reads_buffers(acc, Factor::left) || !s.reads_buffers(acc, Factor::right))
    return std::nullopt;
  problem.operands = {left, sums_tf32(s.store_of(acc)->value)};
  problem.left_bytes = bytes_read(s, acc, Factor::left);
  problem.right_bytes = bytes_read(s, acc, Factor::right);
  return block_tile(s.target(), problem);
}

Loops batches_of(const ScheduleBuilder& s, const MatMulStages& m) {
  Loops batches = s.spatial_loops_of(m.acc);
  std::erase_if(batches, [&](const Loop& l) { return l == m.acc_row || l == m.acc_column; });
  return batches;
}

// The loops over the pixels of all images, outermost first
Loops pixels_of(const ConvLoops& loops) {
  Loops pixels = {loops.image};
  pixels.insert(pixels.end(), loops.lines.begin(), loops.lines.end());
  pixels.push_back(loops.row);
  return pixels;
}

}  // namespace

TileStages arrange_product(ScheduleBuilder& s, const ProductLoops& p, const BlockTile& tile) {
  TileStages m;
  m.tile = tile;
  const int64_t depth = tile.depth * tile.parts;
  const Expr j = variable(p.column), columns(tile.columns),
             step = filled_up(variable(p.depth), depth);
  const auto dims_of = [&](Factor factor, const std::string& prefix) {
    std::vector<ScheduleBuilder::PackedDim> dims;
    for (const Loop& batch : p.batches)
      if (uses_var(s.factor_of(p.acc, factor), batch.name()))
        dims.push_back({variable(batch), prefix + "b" + std::to_string(dims.size())});
    return dims;
  };
  std::vector<ScheduleBuilder::PackedDim> left = dims_of(Factor::left, "x"),
                                          right = dims_of(Factor::right, "w");
  left.insert(left.end(), {{filled_up(variable(p.row), tile.rows), "xi"}, {step, "xk"}});
  right.insert(right.end(),
               {{floor_div(j, columns), "wj"}, {step, "wk"}, {floor_mod(j, columns), "wl"}});
  m.left = s.pack(p.acc, Factor::left, "xt", "global", left).stage;
  const auto packed = s.pack(p.acc, Factor::right, "w", p.known ? kConstantScope : "global", right);
  m.weights = packed.stage.buffer();
  if (!p.known) m.right = packed.stage;
  if (p.made_together && s.sound()) {
    const auto of_batches = packed.loops.end() - 3;
    Loops order(of_batches, packed.loops.end());
    order.insert(order.end(), packed.loops.begin(), of_batches);
    s.reorder(order);
    s.unroll(Loops(packed.loops.begin(), of_batches));
  }
  s.pad_zeros(p.depth, depth);
  m.acc = p.acc, m.depth = p.depth;
  Loops stored = p.batches;
  stored.insert(stored.end(), {p.row, p.column});
  if (tile.parts > 1 && s.sound()) {
    const auto cut = s.split(p.depth, *s.extent(p.depth) / tile.parts, Tail::guard, "part",
                             p.depth.name());
    m.depth = cut.inner, m.total = p.acc;
    m.acc = s.rfactor(p.acc, cut.outer, "part");
    stored.insert(stored.begin(), cut.outer);
    s.reorder(stored);
    s.layout(m.acc.buffer(), [](std::vector<Expr> at) {  // the parts come first
      std::ranges::rotate(at, at.end() - 1);
      return at;
    });
  }
  if (tile.parts > 1 || p.stored) {
    m.y = m.acc;
    m.batches = ScheduleBuilder::cached(m.y, stored);
    m.column = m.batches.back(), m.batches.pop_back();
    m.row = m.batches.back(), m.batches.pop_back();
    m.acc = s.cache_write(m.y, "sums", "global");
  }
  m.acc_row = p.row, m.acc_column = p.column;
  s.pad(p.row, tile.rows);
  s.pad(p.column, tile.columns);
  return m;
}

namespace {

// With y, which reads the sums as they are or adds the parts of split sums
TileStages with_output(TileStages m, const ProductOutput& y) {
  if (m.total.defined()) m.result = y.stage;
  else m.y = y.stage, m.batches = y.batches, m.row = y.row, m.column = y.column;
  return m;
}

}  // namespace

std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const MatMulStages& m) {
  if (m.blocks.sums.defined()) return std::nullopt;
  const std::optional<int64_t> columns = s.extent(m.acc_column), depth = s.extent(m.depth[0]);
  // The excess from a zero point is computed from constant weights.
  if (!columns || !depth || (m.left_zero != 0 && !(m.weights.defined() && m.right_is_matrix)))
    return std::nullopt;
  TileProblem problem;
  problem.batches = points(s, batches_of(s, m)), problem.rows = s.extent(m.acc_row);
  problem.columns = *columns, problem.depth = *depth;
  return tile_of(s, m.acc, m.left_type, m.right_type, problem);
}

TileStages arrange_in_tiles(ScheduleBuilder& s, const MatMulStages& m, const BlockTile& tile) {
  ProductLoops p;
  p.acc = m.acc, p.batches = batches_of(s, m);
  p.row = m.acc_row, p.column = m.acc_column, p.depth = m.depth[0];
  p.known = m.weights.defined();
  if (m.left_zero != 0) s.recount(m.acc, Factor::left, 0, "corr");
  return with_output(arrange_product(s, p, tile), m.y);
}

// Rows are output pixels of all images, and columns the channels of a group. Each phase of a
// transposed convolution is a product.
std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const ConvStages& m) {
  const bool pools = !m.out.window.empty(), phases = !m.sums.phases.empty();
  // Channels that no group has only fill the output's last block.
  const bool shares = m.groups > 1 && m.out_block > 0 && m.groups * m.group_out % m.out_block != 0;
  if (pools || shares || (m.left_zero != 0 && (m.transposed || !m.weights.defined())) ||
      (m.transposed && !phases) || is_const(s.store_of(m.acc)->where, 0))
    return std::nullopt;
  Loops depth = m.taps, rows = pixels_of(m.sums);
  depth.push_back(m.channels);
  TileProblem problem;
  problem.batches = m.groups * points(s, m.sums.phases).value_or(1);
  problem.rows = points(s, rows), problem.gathered = true;
  problem.columns = m.group_out, problem.depth = points(s, depth).value_or(1);
  return tile_of(s, m.acc, m.left_type, m.right_type, problem);
}

namespace {

// Puts the sum at [group.., phase.., pixel, channel of the group].
void place_sums(ScheduleBuilder& s, const ConvStages& m) {
  const Loops loops = s.spatial_loops_of(m.acc);
  s.layout(m.acc.buffer(), [&](const std::vector<Expr>& at) {
    const auto at_loop = [&](const Loop& loop) {
      return at[static_cast<size_t>(std::ranges::find(loops, loop) - loops.begin())];
    };
    const Expr channel = at_loop(m.sums.channel), columns(m.group_out);
    std::vector<Expr> place;
    if (m.groups > 1) place.push_back(floor_div(channel, columns));
    for (const Loop& phase : m.sums.phases) place.push_back(at_loop(phase));
    Expr pixel(0);
    for (const Loop& loop : pixels_of(m.sums)) pixel = pixel * s.any_extent(loop) + at_loop(loop);
    place.insert(place.end(), {pixel, m.groups > 1 ? floor_mod(channel, columns) : channel});
    return place;
  });
}

ProductLoops sums_as_product(ScheduleBuilder& s, const ConvStages& m) {
  ProductLoops p;
  p.acc = m.acc, p.batches = m.sums.phases, p.column = m.sums.channel;
  p.known = m.weights.defined();
  Loops depth = m.taps;
  depth.push_back(m.channels);
  place_sums(s, m);
  if (m.groups > 1) {
    const auto cut = s.split(m.sums.channel, m.group_out, Tail::guard, "ag", "aj");
    p.batches.insert(p.batches.begin(), cut.outer), p.column = cut.inner;
  }
  const Loops rows = pixels_of(m.sums);
  Loops order = p.batches;
  order.insert(order.end(), rows.begin(), rows.end());
  order.push_back(p.column);
  order.insert(order.end(), depth.begin(), depth.end());
  s.reorder(order);
  p.row = s.fuse(rows, "ai"), p.depth = s.fuse(depth, "depth");
  return p;
}

ProductOutput output_as_product(ScheduleBuilder& s, const ConvStages& m) {
  ProductOutput y{m.out.y, m.out.loops.phases, {}, m.out.loops.channel};
  const Loops rows = pixels_of(m.out.loops);
  const Loop lane = m.out_block > 0 ? s.spatial_loops_of(y.stage).back() : Loop();
  Loops order = y.batches;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), {y.column, lane});
  s.reorder(order);
  y.row = s.fuse(rows, "i"), y.column = s.fuse({y.column, lane}, "j");
  if (m.groups == 1) return y;
  const auto cut = s.split(y.column, m.group_out, Tail::guard, "g", "j");
  y.batches.insert(y.batches.begin(), cut.outer), y.column = cut.inner;
  order = y.batches;
  order.insert(order.end(), {y.row, y.column});
  s.reorder(order);
  return y;
}

}  // namespace

TileStages arrange_in_tiles(ScheduleBuilder& s, const ConvStages& m, const BlockTile& tile) {
  if (s.store_of(m.acc)->where.defined()) s.unguard(m.acc, Factor::left);
  if (m.left_zero != 0) s.recount(m.acc, Factor::left, 0, "corr");
  if (m.transposed)
    for (const Stage& copy : m.copies) s.compute_inline(copy);
  if (m.out_block > 0) fill_bias(s, m.bias, m.out, m.out_block);
  TileStages made = arrange_product(s, sums_as_product(s, m), tile);
  return with_output(std::move(made), output_as_product(s, m));
}

}  // namespace tw
