// Brings blocks of B channels to the sums and the products, where B is a vector, and lays the sums
// of the right operand's quarters out in panels: [columns/(2*V*B)][7][k/2/B][B][V*B].
#include "kernels/schedule/operands.h"
#include "kernels/strassen/strassen.h"

namespace tw {

void arrange_strassen(ScheduleBuilder& s, StrassenStages& m) {
  const int64_t block = s.target().lanes(4);
  const int64_t vectors = strassen_vectors(*s.extent(m.acc_row), *s.extent(m.acc_block) / block,
                                           s.target());
  const auto steps = s.split(m.depth_block, block, Tail::guard, "kc", "kl");
  m.depth_block = steps.outer, m.depth_lane = steps.inner;
  const Expr column = variable(m.acc_block), width(vectors * block);
  const auto packed = s.pack(m.acc, Factor::right, "w", kConstantScope,
                             {{floor_div(column, width), "wc"},
                              {variable(m.acc_product), "wq"},
                              {variable(m.depth_block), "wb"},
                              {variable(m.depth_lane), "wi"},
                              {floor_mod(column, width), "wl"}});
  m.weights = packed.stage.buffer();
  // The seven sums of one place share their loads.
  const Loops& w = packed.loops;
  s.reorder({w[0], w[2], w[3], w[4], w[1]});
  s.unroll(w[1]);
  s.block(m.left.buffer(), 1, block, "sl");
  m.left_lane = s.spatial_loops_of(m.left).back();
  s.block(m.acc.buffer(), 2, block, "al");
  m.acc_lane = s.spatial_loops_of(m.acc).back();
  if (m.block.defined()) m.lane = s.spatial_loops_of(m.y).back();
}

}  // namespace tw
