// Lays the sums of the right operand's quarters out in panels: [columns/(2*V*B)][7][k/2/B][B][V*B].
#include "kernels/schedule/builder.h"
#include "kernels/strassen/strassen.h"

namespace tw {

void arrange_strassen(ScheduleBuilder& s, StrassenStages& m) {
  const int64_t vectors = strassen_vectors(*s.extent(m.acc_row), *s.extent(m.acc_block),
                                           s.target());
  const auto at = [](const Loop& loop) { return var(loop.name()); };
  const Expr block = at(m.acc_block), lane = at(m.acc_lane);
  const bool one = vectors == 1;
  const auto packed = s.pack(
      m.acc, Factor::right, "w", kConstantScope,
      {{one ? block : floor_div(block, Expr(vectors)), "wc"},
       {at(m.acc_product), "wq"},
       {at(m.depth_block), "wb"},
       {at(m.depth_lane), "wi"},
       {one ? lane : floor_mod(block, Expr(vectors)) * Expr(*s.extent(m.acc_lane)) + lane, "wl"}});
  m.weights = packed.stage.buffer();
  // The seven sums of one place share their loads.
  const Loops& w = packed.loops;
  s.reorder({w[0], w[2], w[3], w[4], w[1]});
  s.unroll(w[1]);
}

}  // namespace tw
