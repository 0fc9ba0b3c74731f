// Lays the sums of the right operand's quarters out in panels: [columns/(2*V*B)][7][k/2/B][B][V*B].
#include "kernels/schedule/panels.h"
#include "kernels/strassen/strassen.h"

namespace tw {

void arrange_strassen(ScheduleBuilder& s, StrassenStages& m) {
  const int64_t vectors = strassen_vectors(*s.extent(m.acc_row), *s.extent(m.acc_block),
                                           s.target());
  const PanelIndices c = panel_indices(s, m.acc_block, m.acc_lane, vectors);
  const auto packed = s.pack(m.acc, Factor::right, "w", kConstantScope,
                             {{c.panel, "wc"},
                              {variable(m.acc_product), "wq"},
                              {variable(m.depth_block), "wb"},
                              {variable(m.depth_lane), "wi"},
                              {c.place, "wl"}});
  m.weights = packed.stage.buffer();
  // The seven sums of one place share their loads.
  const Loops& w = packed.loops;
  s.reorder({w[0], w[2], w[3], w[4], w[1]});
  s.unroll(w[1]);
}

}  // namespace tw
