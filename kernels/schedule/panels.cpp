#include "kernels/schedule/panels.h"

namespace tw {

Expr variable(const Loop& loop) { return loop.defined() ? var(loop.name()) : Expr(0); }

PanelIndices panel_indices(const ScheduleBuilder& s, const Loop& block, const Loop& lane,
                           int64_t vectors) {
  if (vectors == 1) return {variable(block), variable(lane)};
  const Expr together(vectors), lanes(*s.extent(lane));
  return {floor_div(variable(block), together),
          floor_mod(variable(block), together) * lanes + variable(lane)};
}

}  // namespace tw
