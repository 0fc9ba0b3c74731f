// Lays the transformed weights out in panels: [oc/(V*B)][A][A][ic/C][C][V*B]. The D channels that
// an instruction takes at once are innermost: [..][C/D][V*B][D].
#include "kernels/schedule/panels.h"
#include "kernels/winograd/winograd.h"

namespace tw {

void arrange_winograd(ScheduleBuilder& s, WinogradStages& m) {
  const int64_t vectors = winograd_vectors(*s.extent(m.acc_block), *s.extent(m.acc_tile),
                                           s.target());
  const PanelIndices c = panel_indices(s, m.acc_block, m.acc_lane, vectors);
  std::vector<ScheduleBuilder::PackedDim> dims = {{c.panel, "wc"},
                                                  {variable(m.acc_row), "wa"},
                                                  {variable(m.acc_column), "wb"},
                                                  {variable(m.depth_block), "wr"},
                                                  {variable(m.depth_lane), "wi"},
                                                  {c.place, "wl"}};
  if (m.instruction.depth.defined()) dims.push_back({variable(m.instruction.depth), "wp"});
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
