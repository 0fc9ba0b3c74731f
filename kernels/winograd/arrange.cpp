// Lays the transformed weights out in panels: [oc/(V*B)][A][A][ic/C][C][V*B]. The D channels that
// an instruction takes at once are innermost: [..][C/D][V*B][D].
#include "kernels/schedule/operands.h"
#include "kernels/winograd/winograd.h"

namespace tw {

using Transform = WinogradStages::Transform;

namespace {

// Brings the blocks of the tensors to the stages.
void block_stages(ScheduleBuilder& s, WinogradStages& m, int64_t in, int64_t out) {
  const auto block = [&](Transform& transform, int64_t dim, int64_t by) {
    s.block(transform.stage.buffer(), dim, by);
    transform.lane = s.spatial_loops_of(transform.stage).back();
  };
  s.block(m.pad.buffer(), 1, in);
  block(m.rows, 1, in);
  block(m.columns, 2, in);
  s.block(m.acc.buffer(), 3, out);
  m.acc_lane = s.spatial_loops_of(m.acc).back();
  block(m.out_rows, 1, out);
  block(m.out_columns, 1, out);
  block_output(s, m.out, out);
}

}  // namespace

void arrange_winograd(ScheduleBuilder& s, WinogradStages& m) {
  const int64_t in = *as_const(s.buffer(m.input).shape.back()), out = m.out_block;
  const int64_t together = channels_together(*s.extent(m.depth_block), in),
                blocks = (*s.extent(m.acc_block) + out - 1) / out;
  const DType type = s.buffer(m.columns.stage.buffer()).dtype;
  const IntegerProduct product = winograd_product(type, s.target(), together, out);
  const auto cut = s.split(m.depth_block, together, Tail::guard, m.depth_block.name(), "kl");
  m.depth_block = cut.outer, m.depth_lane = cut.inner, m.depth = product.depth;
  Loop side_by_side;
  if (product.depth > 1) {
    const auto steps = s.split(m.depth_lane, product.depth, Tail::guard, "kl", "kp");
    m.depth_lane = steps.outer, side_by_side = steps.inner;
  }
  if (product.defined()) m.instruction = product.sums(side_by_side);
  fill_bias(s, m.bias, m.out, out);

  const int64_t vectors = winograd_vectors(blocks, *s.extent(m.acc_tile), s.target());
  const Expr channel = variable(m.acc_block), width(vectors * out);
  std::vector<ScheduleBuilder::PackedDim> dims = {
      {floor_div(channel, width), "wc"}, {variable(m.acc_row), "wa"},
      {variable(m.acc_column), "wb"},    {variable(m.depth_block), "wr"},
      {variable(m.depth_lane), "wi"},    {floor_mod(channel, width), "wl"}};
  if (side_by_side.defined()) dims.push_back({variable(side_by_side), "wp"});
  const auto packed = s.pack(m.acc, Factor::right, "w", kConstantScope, dims);
  m.weights = packed.stage.buffer();
  // All points of one pair of channels are computed together: they share their loads and the first
  // product.
  const Loops& w = packed.loops;
  Loops order = {w[0]};
  order.insert(order.end(), w.begin() + 3, w.end());
  order.insert(order.end(), {w[1], w[2]});
  s.reorder(order);
  s.unroll({w[1], w[2]});
  block_stages(s, m, in, out);
}

}  // namespace tw
