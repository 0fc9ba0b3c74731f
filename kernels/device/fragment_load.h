// Instructions by which threads load together what each has of an operand: rows of small matrices,
// whose elements they deal out among them.
#pragma once
#include <optional>

#include "kernels/device/tiles.h"

namespace tw {

struct FragmentLoad {
  const Intrinsic* intrinsic = nullptr;
  int64_t rows = 1, columns = 1;  // of one matrix; memory has columns side by side
};

// Of the instruction's left operand [row, depth] or its right one [depth, column], as memory has
// it: matrices below each other first, then those beside them. nullopt: the target has none that
// leaves the elements with the threads that the instruction wants them of.
std::optional<FragmentLoad> fragment_load(const Target& target, const TileInstruction& instruction,
                                          bool left);

}  // namespace tw
