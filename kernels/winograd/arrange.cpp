// Lays the transformed weights out in panels: [oc/(V*B)][A][A][ic/C][C][V*B]. The D channels that
// an instruction takes at once are innermost: [..][C/D][V*B][D].
#include "kernels/schedule/builder.h"
#include "kernels/winograd/winograd.h"

namespace tw {

void arrange_winograd(ScheduleBuilder& s, WinogradStages& m) {
  const int64_t vectors = winograd_vectors(*s.extent(m.acc_block), *s.extent(m.acc_tile),
                                           s.target());
  const auto at = [](const Loop& loop) { return var(loop.name()); };
  const Expr block = at(m.acc_block), lane = at(m.acc_lane);
  const bool one = vectors == 1;
  std::vector<ScheduleBuilder::PackedDim> dims = {
      {one ? block : floor_div(block, Expr(vectors)), "wc"},
      {at(m.acc_row), "wa"},
      {at(m.acc_column), "wb"},
      {at(m.depth_block), "wr"},
      {at(m.depth_lane), "wi"},
      {one ? lane : floor_mod(block, Expr(vectors)) * Expr(*s.extent(m.acc_lane)) + lane, "wl"}};
  if (m.instruction.depth.defined()) dims.push_back({at(m.instruction.depth), "wp"});
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
}

}  // namespace tw
