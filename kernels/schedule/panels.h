// Indices for weights that are packed in panels of vectors.
#pragma once
#include "kernels/schedule/builder.h"

namespace tw {

inline constexpr int64_t kWidestPanel = 8;  // in vectors, for the search spaces

// The loop's variable; 0 if the loop is none
Expr variable(const Loop& loop);

// Blocks of channels in panels of `vectors` blocks: the panel's index, and the place in the panel.
// lane: the loop in a block, which `s` must have if there are several vectors
struct PanelIndices {
  Expr panel, place;
};
PanelIndices panel_indices(const ScheduleBuilder& s, const Loop& block, const Loop& lane,
                           int64_t vectors);

}  // namespace tw
